'use strict';
// The pictures of docs/screens: some pages for people with data on them, at two widths, light and dark.
// STAGEDOOR_PICTURES=docs/screens interop/run screens
const assert = require('node:assert/strict');
const { mkdirSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join, resolve } = require('node:path');
const { suite } = require('../js/lib/tap.js');
const w = require('../js/lib/world.js');
const { launch } = require('./chromium.js');
const { BASE, PHONE, api, consoleLink } = require('./console_rig.js');

const { demo, streamer, viewer, world } = w;
const FOLDER = resolve(process.env.STAGEDOOR_PICTURES ?? '../.cache/screens');
const BYTES_MAX = 150_000;
const DESK = { width: 1280, height: 740 };
const SAID = {
  'ko-KR': ['오늘 방송 몇 시에 시작해요?', '인사드립니다! 처음 왔어요', '저번 주 등대 편 정말 좋았어요', '채팅 봇이 공지 올려 줬네요', '잘 보고 있습니다'],
  'en-US': ['When do you start today?', 'Hello, first time here!', 'Last week was great', 'The bot put up a notice', 'Watching along'],
};

const consent = () => {
  const query = new URLSearchParams({ clientId: demo.clientId, redirectUri: demo.redirectUris[0], state: 'screens' });
  return `${world.authUrl}/account-interlock?${query}`;
};
const application = (end) => (own) => `${BASE}/developers/applications/${own}${end}`;

// name, address, language, window, scheme, person
const SCREENS = [
  ['console', () => `${BASE}/`, 'en-US', DESK, 'dark', null],
  ['sign-in', () => `${BASE}/sign-in`, 'ko-KR', PHONE, 'dark', null],
  ['consent', consent, 'ko-KR', PHONE, 'light', viewer],
  ['connected-app', () => `${BASE}/account/apps/${demo.clientId}`, 'en-US', PHONE, 'light', streamer],
  ['developer-center', () => `${BASE}/developers`, 'en-US', DESK, 'light', streamer],
  ['application', application(''), 'ko-KR', DESK, 'dark', streamer],
  ['studio-chat', () => `${BASE}/studio/chat#messages`, 'ko-KR', DESK, 'light', streamer],
  ['studio', () => `${BASE}/studio`, 'en-US', PHONE, 'dark', streamer],
  ['operator', () => `${BASE}/operator`, 'en-US', DESK, 'dark', streamer],
  ['docs', () => `${BASE}/docs/chat`, 'en-US', DESK, 'light', null],
  ['guide', () => `${BASE}/docs/guides/sessions`, 'ko-KR', PHONE, 'light', null],
];

async function signIn(page, person) {
  await page.goto(`${BASE}/sign-in`);
  await page.fill('input[name=login]', person.login);
  await page.fill('input[name=password]', person.password);
  await page.press('input[name=password]', 'Enter');
  await page.waitForURL((url) => url.pathname !== '/sign-in');
}

/** Makes what the pages show, and gives the id of the streamer's application. */
async function furnish(browser) {
  await api('PUT', `platform/v1/channels/${streamer.channelId}/operator-role`, { role: 'admin' });
  const context = await browser.newContext({ locale: 'en-US' });
  const page = await context.newPage();
  await signIn(page, streamer);
  await page.goto(`${BASE}/developers/register`);
  await page.fill('[name=name]', 'Lighthouse overlay');
  await page.fill('[name=redirectUris]', 'https://overlay.example/callback');
  await Promise.all([page.waitForEvent('load'), page.locator('main form:not([role=search]) button[type=submit]').first().click()]);
  const own = await page.inputValue('#client-id');
  await page.goto(`${BASE}/developers/applications/${own}/scopes`);
  for (const choice of (await page.locator('[name=scopes]').all()).slice(0, 6)) await choice.check();
  await Promise.all([page.waitForEvent('load'), page.locator('main form:not([role=search]) button[type=submit]').first().click()]);
  await context.close();
  return own;
}

async function say(locale) {
  for (const message of SAID[locale]) {
    await api('POST', 'trigger/chat', { channel: streamer.channelId, message });
  }
}

suite(async (step) => {
  const home = mkdtempSync(join(tmpdir(), 'chromium-'));
  const browser = await launch(home, ['--disable-lcd-text']);
  mkdirSync(FOLDER, { recursive: true });
  try {
    const own = await step('there is something to show', () => furnish(browser));
    let said;
    for (const [name, address, locale, viewport, colorScheme, person] of SCREENS) {
      await step(`a picture of ${name}`, async () => {
        if (said !== locale) await say(locale);
        said = locale;
        const context = await browser.newContext({ locale, viewport, colorScheme });
        const page = await context.newPage();
        if (person) await signIn(page, person);
        if (name === 'console') await page.goto(await consoleLink());
        const answer = await page.goto(address(own), { waitUntil: 'load' });
        assert.equal(answer.status(), 200, address(own));
        const picture = await page.screenshot({ animations: 'disabled' });
        writeFileSync(join(FOLDER, `${name}.png`), picture);
        assert.ok(picture.length < BYTES_MAX, `${name}: ${picture.length} bytes`);
        await context.close();
      });
    }
  } finally {
    await browser.close();
    rmSync(home, { recursive: true, force: true });
  }
});
