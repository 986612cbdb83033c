'use strict';
// The console in Chromium: what happens is shown while it happens, the forms work with the keyboard and without
// JavaScript, the page fits a phone, and no text of a user becomes markup.
const assert = require('node:assert/strict');
const { mkdirSync, mkdtempSync, rmSync } = require('node:fs');
const { createServer } = require('node:http');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const io = require('socket.io-client-1.0.6');
const { Inbox } = require('../js/lib/inbox.js');
const { suite } = require('../js/lib/tap.js');
const w = require('../js/lib/world.js');
const { launch } = require('./chromium.js');

const { streamer, viewer, world } = w;
const BASE = new URL(world.baseUrl).origin;
const PHONE = { width: 390, height: 844 };
const HOSTILE = '"><script>document.title="hostile"</script><img src=x onerror="document.title=\'hostile\'">';
// A folder for pictures of the page, to look at.
const PICTURES = process.env.STAGEDOOR_PICTURES;

/** A page of a new browser profile that records every forbidden action. */
async function freshPage(browser, options) {
  const context = await browser.newContext({ locale: 'en-US', ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on('console', (message) => message.type() === 'error' && wrong.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => wrong.push(`script: ${error.message}`));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== 'data:' && origin !== BASE) wrong.push(`request: ${request.url()}`);
  });
  await page.goto(`${BASE}/`);
  return { context, page, wrong };
}

async function api(method, path, body) {
  const response = await fetch(`${BASE}/sandbox/v1/${path}`, {
    method,
    headers: { Authorization: `Bearer ${world.operatorKey}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer.content;
}

/** Opens a session of the streamer that is subscribed to donations. */
async function listen() {
  const headers = w.asUser(streamer.tokens.demo.accessToken);
  const { url } = await w.get('/open/v1/sessions/auth', headers);
  const inbox = new Inbox();
  const socket = io.connect(url, { reconnection: false, 'force new connection': true, transports: ['websocket'] });
  for (const name of ['SYSTEM', 'DONATION']) socket.on(name, (text) => inbox.push(name, JSON.parse(text)));
  const { sessionKey } = (await inbox.system('connected')).data;
  await w.post('/open/v1/sessions/events/subscribe/donation', headers, { sessionKey });
  await inbox.system('subscribed', 'DONATION');
  return { socket, inbox, sessionKey };
}

/** Chooses a kind of trigger as a person does, and returns its form. */
async function choose(page, kind) {
  await page.locator(`label[for="kind-${kind}"]`).click();
  const form = page.locator(`form[action$="/trigger/${kind}"]`);
  await form.waitFor({ state: 'visible' });
  return form;
}

async function aDonationArrives({ browser, listener }) {
  const { context, page, wrong } = await freshPage(browser);
  await page.locator('#chat-view').getByText(listener.sessionKey).waitFor();
  const form = await choose(page, 'donation');
  await form.locator('[name=amount]').fill('7700');
  await form.getByRole('button').click();
  await page.locator('#result').getByText('Sessions that it was delivered to: 1').waitFor();
  await page.locator('#records .k-trigger').first().waitFor();
  const donation = await listener.inbox.event('DONATION');
  assert.equal(donation.payAmount, '7700');
  // What others do is shown too.
  await api('POST', 'trigger/follow', { channel: 'sol', from: 'mina' });
  await page.locator('#records li', { hasText: 'follow' }).first().waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
}

async function theClockStopsAndMoves({ browser }) {
  const { context, page, wrong } = await freshPage(browser);
  await page.getByRole('button', { name: 'Freeze', exact: true }).click();
  await page.locator('#now').getByText('frozen').waitFor();
  const before = Date.parse((await api('GET', 'clock')).now);
  await page.getByRole('button', { name: '+1h', exact: true }).click();
  const shown = new Date(before + 3_600_000).toISOString().slice(0, 19).replace('T', ' ');
  await page.locator('#now').getByText(shown).waitFor();
  assert.equal(Date.parse((await api('GET', 'clock')).now), before + 3_600_000);
  await page.locator('#until').selectOption('access-token.expired');
  await page.locator('form', { has: page.locator('#until') }).getByRole('button').click();
  await page.locator('#result').getByText('access-token.expired').first().waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('#now').getByText('real time').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
}

async function aFaultIsAddedAndRemoved({ browser }) {
  const { context, page, wrong } = await freshPage(browser);
  await page.getByText('Add a rule').first().click();
  await page.locator('label[for="effect-status"]').click();
  await page.locator('#effect-status-1').fill('503');
  await page.locator('#match-path').fill('/open/v1/channels');
  await page.locator('#faults').getByRole('button', { name: 'Add a rule' }).click();
  const rule = page.locator('#fault-list li', { hasText: 'status 503' });
  await rule.getByText('0 hits').waitFor();
  assert.equal((await fetch(`${BASE}/open/v1/channels`)).status, 503);
  await rule.getByText('1 hits').waitFor();
  await page.locator('#records .k-fault').first().waitFor();
  await rule.getByRole('button', { name: /Remove/ }).click();
  await rule.waitFor({ state: 'detached' });
  assert.deepEqual((await api('GET', 'faults')).data, []);
  assert.deepEqual(wrong, []);
  await context.close();
}

async function theLanguageIsRemembered({ browser }) {
  const { context, page, wrong } = await freshPage(browser);
  assert.equal(await page.getAttribute('html', 'lang'), 'en');
  await page.getByRole('link', { name: '한국어' }).click();
  await page.waitForSelector('html[lang=ko]');
  await page.goto(`${BASE}/`);
  assert.equal(await page.getAttribute('html', 'lang'), 'ko');
  await page.getByRole('heading', { name: '일으키기' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
}

async function itFits({ browser }) {
  for (const viewport of [PHONE, { width: 1400, height: 900 }]) {
    for (const [colorScheme, locale] of [['light', 'en-US'], ['dark', 'ko-KR']]) {
      const { context, page, wrong } = await freshPage(browser, { colorScheme, viewport, locale });
      await page.locator('.adder > summary').first().click();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= viewport.width, `the page is ${width} px wide at ${viewport.width} px`);
      if (viewport === PHONE) {
        const small = await page.evaluate(() => [...document.querySelectorAll('button, select, input:not([type=hidden])')]
          .filter((control) => control.offsetParent && !control.closest('.picker') && control.type !== 'checkbox')
          .filter((control) => control.getBoundingClientRect().height < 32).map((control) => control.outerHTML));
        assert.deepEqual(small, []);
      }
      const dark = await page.evaluate(() => {
        const [r, g, b] = getComputedStyle(document.body).color.match(/[\d.]+/g).map(Number);
        return r + g + b > 382;
      });
      assert.equal(dark, colorScheme === 'dark', 'the text does not follow the colour scheme');
      if (PICTURES) {
        mkdirSync(PICTURES, { recursive: true });
        await page.screenshot({ path: join(PICTURES, `console-${viewport.width}-${colorScheme}.png`), fullPage: true });
      }
      assert.deepEqual(wrong, []);
      await context.close();
    }
  }
}

async function theKeyboardIsEnough({ browser }) {
  const { context, page, wrong } = await freshPage(browser);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('href')), '#main', 'the skip link is first');
  await page.keyboard.press('Enter');
  const active = () => page.evaluate(() => {
    const { id, name, localName } = document.activeElement;
    const style = getComputedStyle(document.activeElement);
    return { id, name, localName, outline: style.outlineStyle };
  });
  await page.keyboard.press('Tab');
  assert.equal((await active()).name, 'kind', 'the first control of the content chooses what is triggered');
  await page.keyboard.press('ArrowRight');
  assert.equal((await active()).id, 'kind-donation');
  for (let tabs = 0; (await active()).localName !== 'button'; tabs += 1) {
    assert.ok(tabs < 12, 'Tab reaches the button of the form');
    await page.keyboard.press('Tab');
    assert.notEqual((await active()).outline, 'none', 'the focus is visible');
  }
  await page.keyboard.press('Enter');
  await page.locator('#result').getByText('Donation: Done').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#result').textContent(), '');
  const sections = await page.evaluate(() => {
    const unlabelled = [...document.querySelectorAll('input:not([type=hidden]), select')].filter((control) => !control.labels?.length);
    return unlabelled.map((control) => control.outerHTML);
  });
  assert.deepEqual(sections, [], 'every control has a label');
  assert.deepEqual(wrong, []);
  await context.close();
}

async function itWorksWithoutScripts({ browser }) {
  const { context, page, wrong } = await freshPage(browser, { javaScriptEnabled: false, viewport: PHONE });
  const form = await choose(page, 'chat');
  await form.locator('[name=message]').fill(HOSTILE.slice(0, 90));
  await form.getByRole('button').click();
  await page.locator('#result').getByText('Chat: Done').waitFor();
  assert.equal(await page.title(), 'Console · Stagedoor');
  await page.getByRole('button', { name: 'Freeze', exact: true }).click();
  await page.locator('#now').getByText('frozen').waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('#now').getByText('real time').waitFor();
  await page.locator('#advance').fill('soon');
  await page.getByRole('button', { name: 'Advance', exact: true }).click();
  await page.locator('#result').getByText('advance: must be a duration').waitFor();
  await page.goto(`${BASE}/?kind=trigger`);
  assert.ok((await page.locator('#records li').count()) > 0);
  assert.equal(await page.locator('#records .k-request').count(), 0);
  assert.deepEqual(wrong.filter((line) => !line.includes('400')), []);
  await context.close();
}

async function nobodyElseGetsIn({ browser }) {
  const { context, page } = await freshPage(browser);
  const cookies = await context.cookies(BASE);
  const cookie = cookies.find(({ name }) => name.startsWith('stagedoor_console_') && !name.endsWith('language'));
  assert.ok(cookie.httpOnly && cookie.sameSite === 'Strict', JSON.stringify(cookie));
  // Another port of the same machine is the same site, so the browser sends the cookie.
  const server = createServer((_, response) => response.end('<!doctype html><title>elsewhere</title>'));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const outcomes = await page.evaluate(async (base) => {
    const body = new URLSearchParams({ mode: 'frozen' });
    const forms = { method: 'POST', body, credentials: 'include' };
    const read = (path, options) => fetch(`${base}${path}`, options).then(({ status }) => status, () => 'blocked');
    return [
      await read('/sandbox/console/act?call=POST+/sandbox/v1/clock', forms),
      await read('/sandbox/v1/state', { credentials: 'include' }),
    ];
  }, BASE);
  server.close();
  assert.deepEqual(outcomes, ['blocked', 'blocked']);
  assert.equal((await api('GET', 'clock')).mode, 'real');
  await context.close();
}

async function textsAreOnlyTexts({ browser }) {
  const { context, page, wrong } = await freshPage(browser);
  const message = HOSTILE.slice(0, 90);
  await api('POST', 'trigger/chat', { channel: streamer.channelId, from: viewer.channelId, message });
  await page.locator('#records').getByText('<script>').first().waitFor();
  await page.goto(`${BASE}/?channel=${encodeURIComponent(HOSTILE)}&where=${encodeURIComponent('<script>alert(1)</script>')}`);
  await page.locator('#where-wrong').waitFor();
  assert.equal(await page.title(), 'Console · Stagedoor');
  assert.equal(await page.locator('script:not([src]), main img').count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
}

suite(async (step) => {
  const profile = mkdtempSync(join(tmpdir(), 'stagedoor-browser-'));
  const browser = await launch(profile);
  const rig = { browser };
  try {
    rig.listener = await step('a session is open', listen);
    await step('a donation is triggered, arrives and is shown', () => aDonationArrives(rig));
    await step('the clock stops, moves and runs', () => theClockStopsAndMoves(rig));
    await step('a fault is added, hits and is removed', () => aFaultIsAddedAndRemoved(rig));
    await step('the chosen language is remembered', () => theLanguageIsRemembered(rig));
    await step('the page fits a phone and a desk, light and dark', () => itFits(rig));
    await step('the keyboard alone is enough', () => theKeyboardIsEnough(rig));
    await step('triggers and the clock work without JavaScript', () => itWorksWithoutScripts(rig));
    await step('a page of another origin changes nothing', () => nobodyElseGetsIn(rig));
    await step('no text of a user becomes markup', () => textsAreOnlyTexts(rig));
  } finally {
    await browser.close();
    rig.listener?.socket.close();
    rmSync(profile, { recursive: true, force: true });
  }
});
