'use strict';
// What the steps of console.js share: pages, calls, a session, a stagedoor of their own.
const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { mkdirSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const io = require('socket.io-client-1.0.6');
const { Inbox } = require('../js/lib/inbox.js');
const w = require('../js/lib/world.js');

const { streamer, world } = w;
const BASE = new URL(world.baseUrl).origin;
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 900 };
// A folder for pictures of the page, to look at.
const PICTURES = process.env.STAGEDOOR_PICTURES;
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** A page of a new browser profile that records every forbidden action. It confirms what it is asked. */
async function freshPage(browser, { base = BASE, key = world.operatorKey, path = '/', ...options } = {}) {
  const context = await browser.newContext({ locale: 'en-US', ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const wrong = [];
  page.on('console', (message) => message.type() === 'error' && wrong.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => wrong.push(`script: ${error.message}`));
  page.on('dialog', (dialog) => dialog.accept());
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (!['data:', 'blob:'].includes(protocol) && origin !== base) wrong.push(`request: ${request.url()}`);
  });
  await page.goto(await consoleLink({ base, key, to: path }));
  return { context, page, wrong };
}

/** An address that opens the console, or another page of the sandbox, once, and gives the browser the console's cookie. */
async function consoleLink({ base = BASE, key = world.operatorKey, to = '/' } = {}) {
  const { url } = await api('POST', 'console-link', undefined, { base, key });
  return `${url}&to=${encodeURIComponent(to)}`;
}

async function api(method, path, body, { base = BASE, key = world.operatorKey } = {}) {
  const response = await fetch(`${base}/${path.startsWith('platform/') ? '' : 'sandbox/v1/'}${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer.content;
}

/** Opens a session of the streamer that is subscribed to some events. */
async function listen(events = ['donation']) {
  // The clock may have moved past the end of the first tokens.
  const { accessToken } = await api('POST', 'tokens', { user: streamer.channelId, client: 'demo' });
  const headers = w.asUser(accessToken);
  const { url } = await w.get('/open/v1/sessions/auth', headers);
  const inbox = new Inbox();
  const socket = io.connect(url, { reconnection: false, 'force new connection': true, transports: ['websocket'] });
  for (const name of ['SYSTEM', 'DONATION']) socket.on(name, (text) => inbox.push(name, JSON.parse(text)));
  const { sessionKey } = (await inbox.system('connected')).data;
  for (const event of events) {
    await w.post(`/open/v1/sessions/events/subscribe/${event}`, headers, { sessionKey });
    await inbox.system('subscribed', event.toUpperCase());
  }
  return { socket, inbox, sessionKey };
}

/** Chooses a kind of trigger as a person does, and returns its form. */
async function choose(page, kind) {
  await page.locator(`label[for="kind-${kind}"]`).click();
  const form = page.locator(`form[action$="/trigger/${kind}"]`);
  await form.waitFor({ state: 'visible' });
  return form;
}

/** The serious findings of axe-core on a page. */
async function findings(page) {
  if (!(await page.evaluate('Boolean(window.axe)'))) await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => ['serious', 'critical'].includes(impact))
    .map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.slice(0, 3).map(({ target }) => target).join(', ')}`);
}

async function picture(page, name) {
  if (!PICTURES) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}

/** Starts the binary of the suite, with these variables besides the system's. */
function stagedoor(words, variables) {
  const { STAGEDOOR_BIN, ...rest } = process.env;
  assert.ok(STAGEDOOR_BIN, 'STAGEDOOR_BIN is not set: start the suite by interop/run');
  const systems = Object.entries(rest).filter(([name]) => !name.startsWith('STAGEDOOR_'));
  const env = { ...Object.fromEntries(systems), ...variables };
  return spawn(STAGEDOOR_BIN, words, { stdio: ['ignore', 'pipe', 'pipe'], env });
}

/** Runs a command to its end: its exit code and its output. */
async function run(...words) {
  const child = stagedoor(words, { STAGEDOOR_OPERATOR_KEY: world.operatorKey });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { output += chunk; });
  const [code] = await once(child, 'close');
  return { code, output };
}

module.exports = { BASE, DESK, PHONE, api, consoleLink, choose, findings, freshPage, listen, picture, run, stagedoor };
