'use strict';
// What people do over several pages, with and without JavaScript: a developer registers an application, another person
// allows it, a bot runs with it, the developer ends a session of the bot, the person withdraws, the developer rotates its
// secret, deletes and restores it; a person makes an account, forgets its password, signs out and deletes it; a person signs
// in at the operator's provider; a publisher sets a webhook and sends a message again.
const assert = require('node:assert/strict');
const { createServer } = require('node:http');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { setTimeout } = require('node:timers/promises');
const io = require('socket.io-client-1.0.6');
const { Inbox } = require('../js/lib/inbox.js');
const { suite } = require('../js/lib/tap.js');
const w = require('../js/lib/world.js');
const { launch } = require('./chromium.js');
const { startDelegation } = require('./delegated.js');
const { BASE, DESK, PHONE, api, freshPage } = require('./console_rig.js');

const { streamer, viewer, world } = w;
const PASSWORD = 'a long and simple password';
const LOOK_EVERY_MS = 50;
const STATE = 'state of a journey';

/** A server that answers for the application's redirect address. */
function callbackServer() {
  const server = createServer((_, response) => response.end('<!doctype html><html lang="en"><title>callback</title>back'));
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve({ server, redirect: `http://127.0.0.1:${server.address().port}/callback` }));
  });
}

/** Presses the first button of a part of the page, but not that of the search. */
async function submit(page, within = 'main') {
  const button = page.locator(`${within} form:not([role=search]) button[type=submit]`).or(page.locator(`${within}:is(form) button[type=submit]`));
  await Promise.all([page.waitForEvent('load'), button.first().click()]);
}

async function register(page, login) {
  await page.goto(`${BASE}/register`);
  await page.fill('[name=login]', login);
  await page.fill('[name=channelName]', `Channel of ${login}`);
  await page.fill('[name=email]', `${login}@example.com`);
  await page.fill('[name=password]', PASSWORD);
  await submit(page);
  assert.notEqual(new URL(page.url()).pathname, '/register', await page.textContent('main'));
}

async function signIn(page, login, password) {
  await page.goto(`${BASE}/sign-in`);
  await page.fill('[name=login]', login);
  await page.fill('[name=password]', password);
  await submit(page);
}

async function signOut(page) {
  await page.locator('form[action="/sign-out"]').evaluate((form) => form.closest('details')?.setAttribute('open', ''));
  await Promise.all([page.waitForEvent('load'), page.locator('form[action="/sign-out"] button').click()]);
}

/** A developer registers an application and chooses its scopes. */
async function registerApplication(page, name, redirect) {
  await page.goto(`${BASE}/developers/register`);
  await page.fill('[name=name]', name);
  await page.fill('[name=redirectUris]', 'http://');
  await submit(page);
  await page.locator('#f-redirectUris-error').waitFor();
  await page.fill('[name=redirectUris]', redirect);
  await submit(page);
  const application = {
    clientId: await page.inputValue('#client-id'),
    clientSecret: await page.inputValue('#client-secret'),
    redirectUris: [redirect],
  };
  await page.goto(`${BASE}/developers/applications/${application.clientId}/scopes`);
  for (const choice of await page.locator('[name=scopes]').all()) await choice.check();
  await submit(page);
  return application;
}

/** Another person signs in and allows the application: its tokens. */
async function allow(page, application) {
  const [redirectUri] = application.redirectUris;
  const query = new URLSearchParams({ clientId: application.clientId, redirectUri, state: STATE });
  await page.goto(`${world.authUrl}/account-interlock?${query}`);
  await page.fill('[name=login]', viewer.login);
  await page.fill('[name=password]', viewer.password);
  await submit(page);
  await Promise.all([page.waitForURL(`${redirectUri}?*`), page.locator('button[value=allow]').click()]);
  const code = new URL(page.url()).searchParams.get('code');
  return w.content(await w.tokenByCode(application, code, STATE));
}

/** A bot with a session that is subscribed to chat. */
async function bot(accessToken) {
  const headers = w.asUser(accessToken);
  const { url } = await w.get('/open/v1/sessions/auth', headers);
  const inbox = new Inbox();
  const socket = io.connect(url, { reconnection: false, 'force new connection': true, transports: ['websocket'] });
  socket.on('disconnect', () => inbox.push('closed', {}));
  socket.on('SYSTEM', (text) => inbox.push('SYSTEM', JSON.parse(text)));
  socket.on('CHAT', (text) => inbox.push('CHAT', JSON.parse(text)));
  const { sessionKey } = (await inbox.system('connected')).data;
  await w.post('/open/v1/sessions/events/subscribe/chat', headers, { sessionKey });
  await inbox.system('subscribed', 'CHAT');
  return { socket, inbox, sessionKey };
}

/** The developer sees the session of the bot, and ends it: the bot sees the end. */
async function endSession(page, application, { inbox, sessionKey }) {
  const sessions = `/developers/applications/${application.clientId}/sessions`;
  await page.goto(`${BASE}${sessions}`);
  const row = page.locator('tr', { hasText: sessionKey });
  await Promise.all([page.waitForEvent('load'), row.locator('a').first().click()]);
  await page.locator('td', { hasText: viewer.channelId }).waitFor();
  await submit(page);
  assert.equal(new URL(page.url()).pathname, sessions);
  await page.locator('code', { hasText: 'evicted' }).waitFor();
  await inbox.event('closed');
}

async function withdraw(page, application) {
  await page.goto(`${BASE}/account/apps/${application.clientId}`);
  await page.locator('details.withdraw summary').click();
  await submit(page, 'details.withdraw');
  assert.equal(new URL(page.url()).pathname, '/account/apps');
}

const clientStatus = async (application) => (await w.request('GET', `${BASE}/open/v1/sessions/client`, w.asClient(application))).code;

/** The developer makes a second secret, and revokes the first one. */
async function rotate(page, application) {
  const secrets = `${BASE}/developers/applications/${application.clientId}/secrets`;
  await page.goto(secrets);
  await Promise.all([page.waitForEvent('load'), page.locator('button[name=make]').click()]);
  const renewed = { ...application, clientSecret: await page.inputValue('#made-secret') };
  assert.deepEqual([await clientStatus(application), await clientStatus(renewed)], [200, 200]);
  await page.goto(secrets);
  const old = page.locator('tr', { hasText: application.clientSecret.slice(-4) });
  await Promise.all([page.waitForEvent('load'), old.locator('a').click()]);
  await Promise.all([page.waitForEvent('load'), page.locator('button[value=now]').click()]);
  assert.deepEqual([await clientStatus(application), await clientStatus(renewed)], [401, 200]);
  return renewed;
}

async function deleteAndRestore(page, application, name) {
  const manage = `${BASE}/developers/applications/${application.clientId}/manage`;
  await page.goto(manage);
  await page.fill('[name=name]', 'another name');
  await Promise.all([page.waitForEvent('load'), page.locator('button[name=delete]').click()]);
  await page.locator('#f-name-error').waitFor();
  await page.fill('[name=name]', name);
  await Promise.all([page.waitForEvent('load'), page.locator('button[name=delete]').click()]);
  assert.equal(await clientStatus(application), 401);
  await page.goto(manage);
  await Promise.all([page.waitForEvent('load'), page.locator('button[name=restore]').click()]);
  assert.equal(await clientStatus(application), 200);
}

async function lifeOfAnApplication(browser, redirect, options) {
  const login = `dev-${options.javaScriptEnabled ? 'script' : 'plain'}`;
  const name = `App of ${login}`;
  const developer = await freshPage(browser, options);
  await register(developer.page, login);
  const application = await registerApplication(developer.page, name, redirect);
  const person = await browser.newContext({ locale: 'en-US', ...options });
  const page = await person.newPage();
  const tokens = await allow(page, application);
  await endSession(developer.page, application, await bot(tokens.accessToken));
  const { socket, inbox } = await bot(tokens.accessToken);
  await api('POST', 'trigger/chat', { channel: viewer.channelId, message: 'hello, bot' });
  assert.equal((await inbox.event('CHAT')).content, 'hello, bot');
  await withdraw(page, application);
  await inbox.system('revoked', 'CHAT');
  assert.equal((await w.request('GET', `${BASE}/open/v1/users/me`, w.asUser(tokens.accessToken))).code, 401);
  socket.disconnect();
  const renewed = await rotate(developer.page, application);
  await deleteAndRestore(developer.page, renewed, name);
  // A page of the developer is no page of anybody else.
  const others = await page.goto(`${BASE}/developers/applications/${application.clientId}`);
  assert.equal(others.status(), 404);
  assert.deepEqual(developer.wrong.filter((line) => !/status of (404|422)/.test(line)), []);
  await developer.context.close();
  await person.close();
}

/** The link in the message to this person, which follows the answer of the form. */
async function resetLink(login) {
  for (;;) {
    const { data } = await api('GET', 'log?kind=mail');
    const mails = data.map((record) => JSON.stringify(record)).filter((text) => text.includes(`${login}@example.com`));
    // The message that proves the address came before.
    const links = mails.map((mail) => mail.match(/https?:[^"\\]*reset-password[^"\\]*/)).filter(Boolean);
    if (links.length > 0) return links[0][0];
    await setTimeout(LOOK_EVERY_MS);
  }
}

async function lifeOfAnAccount(browser, options) {
  const login = `person-${options.javaScriptEnabled ? 'script' : 'plain'}`;
  const { context, page } = await freshPage(browser, options);
  await register(page, login);
  await signOut(page);
  await page.goto(`${BASE}/account`);
  assert.equal(new URL(page.url()).pathname, '/sign-in');
  await page.goto(`${BASE}/reset-password`);
  await page.fill('[name=account]', login);
  await submit(page);
  await page.goto(await resetLink(login));
  await page.fill('[name=newPassword]', 'password');
  await submit(page);
  await page.locator('#f-newPassword-error').waitFor();
  await page.fill('[name=newPassword]', `${PASSWORD}, renewed`);
  await submit(page);
  await signIn(page, login, PASSWORD);
  assert.equal(new URL(page.url()).pathname, '/sign-in', 'the old password is valid');
  await signIn(page, login, `${PASSWORD}, renewed`);
  await page.goto(`${BASE}/account/delete`);
  await page.fill('main form [name=login]', login);
  await page.fill('main form [name=password]', `${PASSWORD}, renewed`);
  await submit(page);
  await signIn(page, login, `${PASSWORD}, renewed`);
  assert.equal(new URL(page.url()).pathname, '/sign-in', 'the account is still there');
  await context.close();
}

/** A receiver of webhooks with answers that the test sets. */
function webhookReceiver() {
  const received = [];
  const receiver = { received, status: 503 };
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      received.push(request.headers);
      response.writeHead(receiver.status).end('the answer of the receiver');
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve({ server, url: `http://127.0.0.1:${server.address().port}/hook`, receiver }));
  });
}

/** Loads the page until it shows the text. */
async function reloadUntil(page, text) {
  while (!(await page.textContent('main')).includes(text)) {
    await setTimeout(LOOK_EVERY_MS);
    await page.reload();
  }
}

/** A publisher sets a webhook, sends a test message, sees a claim fail, and sends its message again. */
async function lifeOfAWebhook(browser, claimer, options) {
  const { server, url, receiver } = await webhookReceiver();
  const { context, page, wrong } = await freshPage(browser, options);
  const webhook = `${BASE}/developers/applications/drops/webhook`;
  const press = (locator) => Promise.all([page.waitForEvent('load'), locator.click()]);
  await signIn(page, streamer.login, streamer.password);
  await page.goto(webhook);
  await page.fill('[name=url]', 'ftp://games.example');
  await submit(page, 'form:has([name=url])');
  await page.locator('#f-url-error').waitFor();
  await page.fill('[name=url]', url);
  await submit(page, 'form:has([name=url])');
  assert.equal((await page.inputValue('#made-secret')).length, 43);
  receiver.status = 204;
  await press(page.locator('button[name=test]'));
  await reloadUntil(page, '204 · accepted');
  assert.equal(receiver.received[0]['service-event-message-data-type'], 'webhook_test');
  receiver.status = 503;
  await api('POST', 'trigger/claim', { campaign: 'first-voyage', reward: 'sail', viewer: claimer });
  while (receiver.received.length < 2) await setTimeout(LOOK_EVERY_MS);
  await page.goto(`${webhook}/deliveries`);
  await press(page.locator('tbody a').first());
  await reloadUntil(page, '503 · refused');
  assert.ok((await page.textContent('main')).includes('the answer of the receiver'));
  receiver.status = 200;
  await press(page.locator('button[name=resend]'));
  await reloadUntil(page, '200 · accepted');
  await page.goto(`${BASE}/developers/applications/drops/connection`);
  await press(page.locator('button[name=test]'));
  // A test of the journey before has just ended.
  while ((await page.textContent('main')).includes('Try again a little later')) {
    await setTimeout(1_000);
    await press(page.locator('button[name=test]'));
  }
  assert.ok((await page.textContent('main')).includes('It accepted a message with a wrong signature'));
  await page.goto(`${webhook}/removal`);
  await submit(page);
  assert.equal(new URL(page.url()).pathname, new URL(webhook).pathname);
  assert.deepEqual(wrong.filter((line) => !/status of 422/.test(line)), []);
  await context.close();
  server.close();
  server.closeAllConnections();
}

suite(async (step) => {
  const home = mkdtempSync(join(tmpdir(), 'chromium-'));
  const browser = await launch(home);
  const { server, redirect } = await callbackServer();
  const delegation = await startDelegation();
  try {
    for (const [javaScriptEnabled, viewport] of [[true, DESK], [false, PHONE]]) {
      const options = { javaScriptEnabled, viewport };
      const how = javaScriptEnabled ? 'with JavaScript' : 'without JavaScript, on a phone';
      await step(`an application is registered, allowed, used, withdrawn, rotated, restored: ${how}`, () =>
        lifeOfAnApplication(browser, redirect, options));
      const claimer = javaScriptEnabled ? 'mina' : 'dal';
      await step(`a webhook is set, tested, and sends a message again: ${how}`, () => lifeOfAWebhook(browser, claimer, options));
      await step(`an account is made, reset, signed out, deleted: ${how}`, () => lifeOfAnAccount(browser, options));
      await step(`a person signs in at a provider: ${how}`, () => delegation.journey(browser, options));
    }
  } finally {
    server.close();
    await browser.close();
    delegation.stop();
    rmSync(home, { recursive: true, force: true });
  }
});
