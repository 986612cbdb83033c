'use strict';
// The browser builds of socket.io-client in Chromium, on pages of another origin, like overlays. Driven line by line by
// py/matrix.py; the client's name contains the version: browser-1.0.6.
const { existsSync, mkdtempSync, readFileSync, rmSync } = require('node:fs');
const { createServer } = require('node:http');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { createInterface } = require('node:readline');
const { launch } = require('./chromium.js');

const FOLDERS = [join(__dirname, 'node_modules'), join(__dirname, '..', 'js', 'node_modules')];
const BUILDS = ['dist/socket.io.js', 'socket.io.js'];

function build(client) {
  const name = client.replace('browser-', 'socket.io-client-');
  const places = FOLDERS.flatMap((folder) => BUILDS.map((file) => join(folder, name, file)));
  const found = places.find(existsSync);
  if (!found) throw new Error(`no browser build of ${name}: ./test tools`);
  return readFileSync(found);
}

/** Runs in the page. Returns the functions that the peer calls. */
function open({ url, transport, events }) {
  const ways = {
    websocket: { transports: ['websocket'] },
    polling: { transports: ['polling'] },
    upgrade: {},
    base64: { transports: ['polling'], forceBase64: true },
  };
  const say = (line) => window.tell(JSON.stringify(line).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`));
  const socket = window.io.connect(url, { reconnection: false, forceNew: true, ...ways[transport] });
  socket.on('connect', () => say({ state: 'connect' }));
  socket.on('disconnect', (reason) => say({ state: 'disconnect', detail: String(reason) }));
  for (const name of ['connect_error', 'error']) {
    socket.on(name, (error) => say({ state: name, detail: String(error?.message ?? error) }));
  }
  for (const event of events) socket.on(event, (...args) => say({ event, args }));
  window.leave = () => socket.close();
  window.transport = () => {
    const { name, query } = socket.io.engine.transport;
    say({ transport: name, revision: String(query.EIO) });
  };
}

function pages() {
  const server = createServer((request, response) => {
    const [, client, file] = request.url.split('/');
    if (file) return response.setHeader('Content-Type', 'text/javascript').end(build(client));
    response.setHeader('Content-Type', 'text/html').end(`<!doctype html><meta charset=utf-8><script src="/${client}/socket.io.js"></script>`);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`)));
}

async function main() {
  const home = mkdtempSync(join(tmpdir(), 'stagedoor-browser-'));
  const [browser, origin] = await Promise.all([launch(home), pages()]);
  const opened = new Map();

  async function start({ id, client, ...order }) {
    build(client); // fails here if the client is not installed, instead of later in the page
    const page = await (await browser.newContext()).newPage();
    opened.set(id, page);
    await page.exposeFunction('tell', (line) => process.stdout.write(`{"id":${JSON.stringify(id)},${line.slice(1)}\n`));
    page.on('pageerror', (error) => console.log(JSON.stringify({ id, state: 'script', detail: String(error) })));
    await page.goto(`${origin}/${client}`);
    await page.evaluate(open, order);
  }

  console.log('{"ready": true, "ordered": true}');
  createInterface({ input: process.stdin })
    .on('line', async (line) => {
      const { ask, ...rest } = JSON.parse(line);
      if (ask === 'open') await start(rest);
      if (ask === 'transport') await opened.get(rest.id).evaluate(() => window.transport());
      if (ask === 'leave') await opened.get(rest.id).evaluate(() => window.leave());
    })
    .on('close', async () => {
      await browser.close();
      rmSync(home, { recursive: true, force: true });
      process.exit(0);
    });
}

main();
