'use strict';
// oidc-provider, a certified OpenID Connect provider, and a `stagedoor serve` whose people sign in there.
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createServer } = require('node:net');

const SECRET = 'a secret of the interop suite, long enough';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A provider whose own pages take any login, and ask for consent once. */
async function startProvider(issuer, port, client) {
  const { default: Provider } = await import('oidc-provider');
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'stagedoor', client_secret: SECRET, ...client }],
    claims: { profile: ['name'], email: ['email', 'email_verified'] },
    cookies: { keys: ['interop'] },
    pkce: { required: () => true },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, name: `사람 ${id}`, email: `${id}@example.com`, email_verified: true }),
    }),
  });
  const server = provider.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** An entry of the file of providers. */
const entry = (name, issuer, secret = SECRET) =>
  `  - name: ${name}\n    label: { ko: 회사, en: Company }\n    issuer: ${issuer}\n    clientId: stagedoor\n    clientSecret: ${secret}\n`;

const callback = (port, name) => `http://127.0.0.1:${port}/sign-in/upstream/${name}/callback`;

async function startService(folder, port, file) {
  const base = `http://127.0.0.1:${port}`;
  const options = ['--listen', `127.0.0.1:${port}`, '--data', folder, '--base-url', base];
  const child = spawn(process.env.STAGEDOOR_BIN, ['serve', ...options, '--upstreams', file, '--local-passwords', 'off'], {
    env: { ...process.env, STAGEDOOR_OPERATOR_KEY: 'k'.repeat(40), STAGEDOOR_LISTEN: '' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (text) => (log += text));
  for (let tries = 0; tries < 100; tries += 1) {
    const answer = await fetch(`${base}/health/ready`).catch(() => null);
    if (answer?.ok) return { base, child, log: () => log };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the service did not start:\n${log}`);
}

module.exports = { SECRET, callback, entry, freePort, startProvider, startService };
