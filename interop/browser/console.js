'use strict';
// The console in Chromium: what happens is shown while it happens, the forms work with the keyboard and without
// JavaScript, the page fits a phone, and no text of a user becomes markup.
const assert = require('node:assert/strict');
const { mkdtempSync, rmSync } = require('node:fs');
const { createServer } = require('node:http');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { suite } = require('../js/lib/tap.js');
const w = require('../js/lib/world.js');
const { launch } = require('./chromium.js');
const buttons = require('./console_buttons.js');
const { fromThePrintedLinkToTokens } = require('./console_catch.js');
const keyboard = require('./console_keyboard.js');
const { BASE, DESK, PHONE, api, choose, findings, freshPage, listen, picture } = require('./console_rig.js');

const { streamer, viewer } = w;
const HOSTILE = '"><script>document.title="hostile"</script><img src=x onerror="document.title=\'hostile\'">';

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
  await page.getByRole('heading', { name: '발생시키기' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
}

async function itFits({ browser }) {
  for (const [viewport, colorScheme, locale] of [
    [PHONE, 'light', 'ko-KR'], [PHONE, 'dark', 'en-US'], [DESK, 'light', 'en-US'], [DESK, 'dark', 'ko-KR'],
  ]) {
    const { context, page, wrong } = await freshPage(browser, { colorScheme, viewport, locale });
    for (const summary of await page.locator('.adder > summary').all()) await summary.click();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= viewport.width, `the page is ${width} px wide at ${viewport.width} px`);
    if (viewport === PHONE) {
      const small = await page.evaluate(() => [...document.querySelectorAll('button, .button, select, input:not([type=hidden])')]
        .filter((control) => control.offsetParent && !control.closest('.picker') && control.type !== 'checkbox')
        .filter((control) => control.getBoundingClientRect().height < 32).map((control) => control.outerHTML));
      assert.deepEqual(small, []);
    }
    const dark = await page.evaluate(() => {
      const [r, g, b] = getComputedStyle(document.body).color.match(/[\d.]+/g).map(Number);
      return r + g + b > 382;
    });
    assert.equal(dark, colorScheme === 'dark', 'the text does not follow the colour scheme');
    assert.deepEqual(await findings(page), [], `${viewport.width} px, ${colorScheme}, ${locale}`);
    await picture(page, `console-${viewport.width}-${colorScheme}`);
    assert.deepEqual(wrong, []);
    await context.close();
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
  const rig = { browser, folder: profile };
  try {
    rig.listener = await step('a session is open', listen);
    await step('a donation is triggered, arrives and is shown', () => aDonationArrives(rig));
    await step('the clock stops, moves and runs', () => theClockStopsAndMoves(rig));
    await step('a fault is added, hits and is removed', () => aFaultIsAddedAndRemoved(rig));
    await step('the chosen language is remembered', () => theLanguageIsRemembered(rig));
    await step('each session shows what it received, and why not', () => buttons.receivedAndWhyNot(rig));
    await step('the recording is filtered', () => buttons.theRecordingIsFiltered(rig));
    await step('a network is chosen and removed', () => buttons.aNetworkIsChosenAndRemoved(rig));
    await step('the page fits a phone and a desk, light and dark, and axe-core finds nothing serious', () => itFits(rig));
    await step('everything on the Korean page is Korean', () => buttons.nothingIsLeftInEnglish(rig));
    await step('the keyboard alone is enough', () => theKeyboardIsEnough(rig));
    await step('the keyboard reaches everything, and the focus is visible', () => keyboard.everythingIsReached(rig));
    await step('live updates leave the focus where it is', () => keyboard.liveUpdatesLeaveTheFocus(rig));
    await step('from the printed link to tokens, without a server', () => fromThePrintedLinkToTokens(rig));
    await step('triggers and the clock work without JavaScript', () => itWorksWithoutScripts(rig));
    await step('a page of another origin changes nothing', () => nobodyElseGetsIn(rig));
    await step('no text of a user becomes markup', () => textsAreOnlyTexts(rig));
    await step('tokens end on demand', () => buttons.credentialsEnd(rig));
    await step('a run of a scenario is shown', () => buttons.aScenarioRunIsShown(rig));
    await step('worlds come, go and go back', () => buttons.worldsComeAndGo(rig));
    await step('every effect of a fault is added and hits', () => buttons.everyEffectIsAddedAndHits(rig));
  } finally {
    await browser.close();
    rig.listener?.socket.close();
    rmSync(profile, { recursive: true, force: true });
  }
});
