'use strict';
// Sign-in at oidc-provider, a certified OpenID Connect provider: a `stagedoor serve` of its own, without passwords.
const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

const { callback, entry, freePort, startProvider, startService } = require('./lib/provider.js');
const { Browser, forms, submission } = require('./lib/signin.js');
const { suite } = require('./lib/tap.js');

const BINARY = process.env.STAGEDOOR_BIN;
const HOPS = 15;

const check = (args) =>
  new Promise((resolve) => {
    execFile(BINARY, ['upstream', 'check', ...args], (error, stdout) => resolve({ code: error?.code ?? 0, stdout }));
  });

/** Where a page leads to by itself: a redirect, or a page that refreshes. */
async function open(browser, url, body) {
  const headers = {};
  if (browser.cookies.size) headers.Cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ');
  const response = await fetch(url, { method: body ? 'POST' : 'GET', headers, body, redirect: 'manual' });
  for (const cookie of response.headers.getSetCookie()) browser.keep(cookie);
  const next = response.headers.get('location') ?? response.headers.get('refresh')?.replace(/^0;url=/, '');
  return { url: String(url), status: response.status, next: next && new URL(next, url), html: await response.text() };
}

/** Signs in as `login` from the sign-in page. Gives the page at the end. */
async function signIn(browser, base, login, name = 'company') {
  let page = await open(browser, `${base}/sign-in?next=/account`);
  const button = forms(page.html).find(({ action }) => action === `/sign-in/upstream/${name}`);
  assert.ok(button, `no button:\n${page.html}`);
  page = await open(browser, new URL(button.action, base), submission(button, {}));
  for (let hop = 0; hop < HOPS; hop += 1) {
    if (page.next) {
      page = await open(browser, page.next);
      continue;
    }
    if (page.url.startsWith(base)) return page;
    const form = forms(page.html).find(({ method }) => method === 'POST');
    assert.ok(form, `no form of the provider:\n${page.html}`);
    const body = submission(form, { login, password: 'anything' });
    page = await open(browser, new URL(form.action, page.url), body);
  }
  throw new Error(`the sign-in did not end after ${HOPS} pages`);
}

suite(async (step) => {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-upstream-'));
  const [providerPort, port] = [await freePort(), await freePort()];
  const issuer = `http://127.0.0.1:${providerPort}`;
  const provider = await startProvider(issuer, providerPort, {
    redirect_uris: [callback(port, 'company')],
  });
  const file = join(folder, 'upstreams.yaml');
  writeFileSync(file, `upstreams:\n${entry('company', issuer)}${entry('wrong', issuer, 'another secret')}`);
  let service;
  try {
    const options = ['--upstreams', file, '--base-url', `http://127.0.0.1:${port}`];
    await step('the check finds the configuration good', async () => {
      const { code, stdout } = await check(['company', '--json', ...options]);
      const report = JSON.parse(stdout);
      assert.equal(code, 0, stdout);
      assert.equal(report.redirectAddress, callback(port, 'company'));
      assert.ok(report.steps.some(({ name, state }) => name === 'client' && state === 'ok'), stdout);
    });
    await step('the check finds a wrong secret', async () => {
      const { code, stdout } = await check(['wrong', ...options]);
      assert.equal(code, 1, stdout);
      assert.match(stdout, /failed +client: .*invalid_client/);
    });
    service = await step('the service starts without passwords', () => startService(join(folder, 'data'), port, file));
    const browser = new Browser();
    await step('a person signs in and has an account', async () => {
      const page = await signIn(browser, service.base, 'haneul');
      assert.equal(page.status, 200, page.html);
      assert.match(page.html, /사람 haneul/);
      assert.match(page.html, /haneul@example\.com/);
    });
    await step('the session at the provider signs the person in again, to the same account', async () => {
      const other = new Browser();
      for (const [name, value] of browser.cookies) {
        if (name.startsWith('_')) other.cookies.set(name, value);
      }
      assert.match((await signIn(other, service.base, 'unused')).html, /haneul@example\.com/);
    });
    await step('another person has another account', async () => {
      assert.match((await signIn(new Browser(), service.base, 'nuri')).html, /사람 nuri/);
    });
    await step('a wrong secret signs nobody in', async () => {
      const stranger = new Browser();
      const page = await open(stranger, `${service.base}/sign-in`);
      const button = forms(page.html).find(({ action }) => action === '/sign-in/upstream/wrong');
      const left = await open(stranger, new URL(button.action, service.base), submission(button, {}));
      assert.match(String(left.next), /redirect_uri=/);
      // The provider does not know this redirect address.
      assert.equal((await open(stranger, left.next)).status, 400);
    });
    await step('the pages of passwords are gone', async () => {
      for (const path of ['/register', '/reset-password']) {
        assert.equal((await open(new Browser(), service.base + path)).status, 404, path);
      }
      assert.doesNotMatch((await open(new Browser(), `${service.base}/sign-in`)).html, /type="password"/);
    });
    await step('the log names no code and no secret', async () => {
      assert.doesNotMatch(service.log(), /code=|eyJ|secret of the interop/);
    });
  } finally {
    service?.child.kill('SIGTERM');
    provider.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
});
