'use strict';
// Every button of the console does what it says, and the page says what came of it.
const assert = require('node:assert/strict');
const { readFileSync, writeFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { join } = require('node:path');
const w = require('../js/lib/world.js');
const { BASE, api, choose, freshPage, listen, run } = require('./console_rig.js');

const { demo, streamer, viewer } = w;

const done = (page, title) => page.locator('#result').getByText(`${title}: Done`).waitFor();

/** A webhook's receiver that keeps what it gets. */
async function receiver() {
  const bodies = [];
  const server = createServer((request, response) => {
    request.on('data', (chunk) => bodies.push(String(chunk)));
    request.on('end', () => response.end());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, bodies, url: `http://127.0.0.1:${server.address().port}/hook` };
}

/** Calls with a fault may end without an answer. */
const call = (path) => fetch(`${BASE}${path}`).then((answer) => answer.text()).catch(() => undefined);

/** The effects: what else the form is filled with, and what makes the rule hit. */
function effects(hook) {
  const donation = () => api('POST', 'trigger/donation', { to: streamer.channelId });
  return [
    ['status', { '#effect-status-1': '418', '#match-path': '/open/v1/lives' }, () => call('/open/v1/lives')],
    ['delay', { '#effect-delay-1': '5ms', '#match-path': '/open/v1/channels' }, () => call('/open/v1/channels')],
    ['cut', { '#match-path': '/open/v1/users/*' }, () => call('/open/v1/users/me')],
    ['truncate', { '#match-path': '/open/v1/drops/*' }, () => call('/open/v1/drops/reward-claims')],
    ['drop', {}, donation],
    ['duplicate', {}, donation],
    ['reorder', {}, donation],
    ['late', { '#effect-late-1': '5ms' }, donation],
    ['tamper', {}, () => api('POST', 'trigger/claim', { viewer: viewer.channelId })],
    ['close', {}, donation],
    ['silence', {}, donation],
  ].map(([effect, fields, cause]) => ({ effect, fields, cause, hook }));
}

async function everyEffectIsAddedAndHits({ browser }) {
  const hook = await receiver();
  await api('PUT', 'platform/v1/applications/drops/webhook', { url: hook.url });
  const sessions = [await listen(), await listen()];
  const { context, page, wrong } = await freshPage(browser);
  const offered = await page.locator('[name=_choice]').evaluateAll((inputs) => inputs.map(({ value }) => value));
  const all = effects(hook);
  assert.deepEqual([...offered].sort(), all.map(({ effect }) => effect).sort());
  await page.locator('#faults .adder summary').click();
  for (const { effect, fields, cause } of all) {
    await page.locator(`label[for="effect-${effect}"]`).click();
    for (const [selector, value] of Object.entries(fields)) await page.locator(selector).fill(value);
    await page.locator('#faults').getByRole('button', { name: 'Add a rule' }).click();
    const named = page.locator('.strong', { hasText: new RegExp(`\\b${effect}\\b`) });
    await page.locator('#fault-list li').filter({ has: named }).getByText('0 hits').waitFor();
    await cause();
  }
  await page.waitForFunction((count) => document.querySelectorAll('#fault-list .badge.warm').length === count, all.length);
  assert.deepEqual((await api('GET', 'faults')).data.map(({ hits }) => hits), all.map(() => 1));
  await page.locator('#faults-clear').click();
  await page.locator('#fault-list').getByText('None yet.').waitFor();
  assert.deepEqual((await api('GET', 'faults')).data, []);
  assert.ok(hook.bodies.length > 0, 'the webhook was called');
  assert.deepEqual(wrong, []);
  await context.close();
  for (const { socket } of sessions) socket.close();
  hook.server.close();
}

async function aNetworkIsChosenAndRemoved({ browser }) {
  const { context, page, wrong } = await freshPage(browser);
  await page.locator('#network-list').getByText('Every application has a good network.').waitFor();
  await page.locator('label[for="profile-handover"]').click();
  await page.getByText('a change of the cell every 15 seconds').waitFor();
  await page.locator('#network-client').selectOption('drops');
  await page.getByRole('button', { name: 'Use this network' }).click();
  const row = page.locator('#network-list li', { hasText: 'Handover' });
  await row.getByText('drops').first().waitFor();
  const [rule] = (await api('GET', 'faults')).data;
  assert.deepEqual([rule.profile, rule.match], ['handover', { clientId: 'drops' }]);
  assert.equal(await page.locator('#fault-list li').count(), 0, 'a network is no rule of the other list');
  await row.getByRole('button', { name: /Remove/ }).click();
  await row.waitFor({ state: 'detached' });
  assert.deepEqual((await api('GET', 'faults')).data, []);
  assert.deepEqual(wrong, []);
  await context.close();
}

async function worldsComeAndGo({ browser, folder }) {
  const { context, page, wrong } = await freshPage(browser);
  const worlds = page.locator('#world-list');
  await page.locator('#snapshot-main').fill('earlier');
  await page.locator('#take-main').click();
  await worlds.locator('#forget-earlier').waitFor();

  await page.getByText('New world').first().click();
  await page.locator('#world-name').fill('fork');
  await page.locator('#world-from').selectOption('earlier');
  await page.locator('#worlds').getByRole('button', { name: 'Create', exact: true }).click();
  await done(page, 'New world');
  await worlds.locator('#delete-fork').waitFor();

  const download = page.waitForEvent('download');
  await worlds.locator('#export-fork').click();
  const exported = join(folder, 'fork.json');
  await (await download).saveAs(exported);
  const file = page.waitForEvent('download');
  await worlds.locator('#file-fork').click();
  const yaml = join(folder, 'fork.yaml');
  await (await file).saveAs(yaml);
  assert.match(readFileSync(yaml, 'utf8'), /streamer-haneul/);

  await page.getByText('Import a world').first().click();
  for (const [name, path] of [['copy', exported], ['again', yaml]]) {
    await page.locator('#import-name').fill(name);
    await page.locator('#import-file').setInputFiles(path);
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await done(page, 'Import a world');
    await worlds.locator(`#delete-${name}`).waitFor();
    await page.keyboard.press('Escape');
  }
  await page.locator('#import-text').fill('people: none');
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.locator('#result .result.bad').waitFor();

  await aWorldGoesBack(browser, await worlds.locator('#world-fork').getAttribute('href'));
  for (const name of ['copy', 'again', 'fork']) {
    await worlds.locator(`#delete-${name}`).click();
    await worlds.locator(`#delete-${name}`).waitFor({ state: 'detached' });
  }
  await worlds.locator('#forget-earlier').click();
  await worlds.locator('#forget-earlier').waitFor({ state: 'detached' });
  assert.deepEqual((await api('GET', 'worlds')).data.map(({ worldId }) => worldId), ['main']);
  assert.deepEqual(wrong.filter((line) => !line.includes('400')), []);
  await context.close();
}

/** On the world's own page: back to a snapshot, back to the beginning, and it goes on. */
async function aWorldGoesBack(browser, href) {
  const base = new URL(href).origin;
  const { operatorKey } = (await api('GET', 'worlds')).data.find(({ baseUrl }) => new URL(baseUrl).origin === base);
  const { context, page, wrong } = await freshPage(browser, { base, key: operatorKey });
  const follow = async () => {
    const form = await choose(page, 'follow');
    await form.getByRole('button').click();
    await page.locator('#records .k-trigger').first().waitFor();
  };
  await follow();
  for (const button of ['#back-fork', '#reset-fork']) {
    await page.locator(button).click();
    await done(page, button === '#back-fork' ? 'Restore' : 'Reset');
    await page.waitForFunction(() => !document.querySelector('#records .k-trigger'));
    await follow();
  }
  assert.deepEqual(wrong.filter((line) => !/Failed to load|ERR_/.test(line)), []);
  await context.close();
}

async function credentialsEnd({ browser }) {
  const { context, page, wrong } = await freshPage(browser);
  const { accessToken } = await api('POST', 'tokens', { user: viewer.channelId, client: 'demo' });
  const form = await choose(page, 'expire');
  for (const what of ['access-token', 'refresh-token']) {
    await form.locator('[name=what]').selectOption(what);
    await form.locator('[name=user]').selectOption(viewer.channelId);
    await form.locator('[name=client]').selectOption('demo');
    await form.getByRole('button').click();
    await page.locator('#result').getByText('Expire: Done').waitFor();
    await page.keyboard.press('Escape');
    const { status } = await fetch(`${BASE}/open/v1/users/me`, { headers: { Authorization: `Bearer ${accessToken}` } });
    assert.equal(status, 401);
  }
  // A second time there is nothing left, and the page says so.
  await form.getByRole('button').click();
  await page.locator('#result').getByText('no refresh-token like this is still valid').waitFor();
  assert.deepEqual(wrong.filter((line) => !line.includes('409')), []);
  await context.close();
}

async function aScenarioRunIsShown({ browser, folder }) {
  const { context, page, wrong } = await freshPage(browser);
  const file = join(folder, 'two.yaml');
  writeFileSync(file, 'scenario: two-steps\nabout: Two steps.\nsteps:\n  - trigger: { kind: chat }\n  - trigger: { kind: chat, channel: unknown }\n');
  const { code, output } = await run('scenario', 'run', '--server', BASE, file);
  assert.equal(code, 1, output);
  const row = page.locator('#run-list li', { hasText: 'two-steps' });
  await row.getByText('no channel is called unknown').waitFor();
  await row.getByText('Failed').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
}

async function theRecordingIsFiltered({ browser }) {
  await call('/open/v1/nowhere');
  const { context, page, wrong } = await freshPage(browser);
  const kinds = () => page.locator('#records .kind').allTextContents();
  await page.locator('#record-kind').selectOption('trigger');
  await page.waitForFunction(() => [...document.querySelectorAll('#records .kind')].every(({ textContent }) => textContent === 'trigger'));
  assert.ok((await kinds()).length > 0);
  await page.locator('#record-kind').selectOption('request');
  await page.locator('#where').fill('status=>=404 path=/open/v1/nowhere');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.waitForFunction(() => [...document.querySelectorAll('#records .what')].every(({ textContent }) => textContent.endsWith('/nowhere')));
  const before = await page.locator('#records li').count();
  // New records pass the same filter.
  await call('/open/v1/channels');
  await call('/open/v1/nowhere');
  await page.waitForFunction((count) => document.querySelectorAll('#records li').length > count, before);
  assert.deepEqual(new Set(await page.locator('#records .what').allTextContents()), new Set(['GET /open/v1/nowhere']));
  await page.locator('#where').fill('nonsense');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.locator('#where-wrong').getByText('nonsense').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
}

async function receivedAndWhyNot({ browser, listener }) {
  const idle = await listen([]);
  const { context, page, wrong } = await freshPage(browser);
  await api('POST', 'trigger/donation', { to: streamer.channelId, message: 'who gets this' });
  const event = page.locator('#chat-log li', { hasText: 'who gets this' });
  await event.locator('.good', { hasText: listener.sessionKey.slice(0, 8) }).waitFor();
  await event.locator('.bad', { hasText: `${idle.sessionKey.slice(0, 8)}: not subscribed to DONATION` }).waitFor();
  await page.goto(`${BASE}/?lang=ko`);
  await page.locator('#chat-log .bad', { hasText: 'DONATION 구독 안 함' }).first().waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
  idle.socket.close();
}

async function nothingIsLeftInEnglish({ browser }) {
  const { context, page, wrong } = await freshPage(browser, { locale: 'ko-KR' });
  // What is no word of the language: names of the API, ids, addresses, and what people have written.
  const english = await page.evaluate(() => {
    const texts = [...document.querySelectorAll('h1, h2, h3, p.about, label, legend, summary, button, .none, .badge, nav a')]
      .filter((element) => !element.closest('#records, #chat-log, code') && element.id !== 'records')
      .map((element) => element.textContent.trim());
    const hints = [...document.querySelectorAll('[placeholder]')].map(({ placeholder }) => placeholder);
    return [...texts, ...hints].filter((text) => /[a-z]{3,} [a-z]{2,}/.test(text) && !/[가-힣]/.test(text));
  });
  assert.deepEqual(english.filter((text) => !text.startsWith(demo.clientId)), []);
  assert.deepEqual(wrong, []);
  await context.close();
}

module.exports = {
  aNetworkIsChosenAndRemoved, aScenarioRunIsShown, credentialsEnd, everyEffectIsAddedAndHits, nothingIsLeftInEnglish,
  receivedAndWhyNot, theRecordingIsFiltered, worldsComeAndGo,
};
