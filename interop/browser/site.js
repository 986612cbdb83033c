'use strict';
// Every page for people in Chromium, in both languages, at two widths, light and dark: a page fits its window and loads
// nothing from other hosts. In each language, width and color scheme axe-core finds nothing serious.
const assert = require('node:assert/strict');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { suite } = require('../js/lib/tap.js');
const w = require('../js/lib/world.js');
const { launch } = require('./chromium.js');
const { BASE, DESK, PHONE, api, findings, freshPage, picture } = require('./console_rig.js');

const { streamer, viewer } = w;
const START = ['/', '/account', '/account/apps', '/account/sessions', '/developers', '/studio', '/operator', '/docs',
  '/developers/applications/drops/webhook'];
// An address without a listener: the messages to it show failed attempts.
const WEBHOOK = { url: 'http://127.0.0.1:9/webhook' };
// Pages that only forms lead to.
const FOUND = ['/developers/find?id=0123456789abcdef0123'];
const SIGNED_OUT = ['/sign-in', '/register', '/reset-password', '/no-such-page'];
// Three lines. What is taller, in px, is a column of letters.
const BUTTON_HEIGHT_MAX = 96;
// Width of the narrowest window in which tables stand as such, with all their columns, in px.
const DESK_WIDTH_MIN = 1024;
// Parts of addresses that name one of many things.
const ID = /^(.*\d.*|demo|drops|sandbox-games|(streamer|viewer)-.*|org-.*)$/;

/** The address without what differs between pages of one kind. */
function kind(path) {
  const parts = path.split(/[?#]/)[0].split('/');
  return parts.map((part) => (ID.test(part) ? '{id}' : part)).join('/');
}

async function signIn(page) {
  await page.goto(`${BASE}/sign-in`);
  await page.fill('input[name=login]', streamer.login);
  await page.fill('input[name=password]', streamer.password);
  await page.press('input[name=password]', 'Enter');
  await page.waitForURL((url) => url.pathname !== '/sign-in');
}

/** The addresses of one page of each kind that links lead to. */
async function everyPage(browser) {
  const { context, page } = await freshPage(browser);
  await signIn(page);
  const found = new Map(START.map((path) => [kind(path), path]));
  for (const path of found.values()) {
    const answer = await page.request.get(`${BASE}${path}`, { headers: { Accept: 'text/html' } });
    const isPage = (answer.headers()['content-type'] ?? '').startsWith('text/html');
    if (!isPage) found.delete(kind(path));
    const text = isPage ? await answer.text() : '';
    for (const [, link] of text.matchAll(/<a [^>]*href="(\/[^"#]*)/g)) {
      const next = link.replaceAll('&amp;', '&');
      if (!next.includes('lang=') && !found.has(kind(next))) found.set(kind(next), next);
    }
  }
  await context.close();
  return [...found.values(), ...FOUND];
}

const isPhone = (page) => page.viewportSize().width < DESK_WIDTH_MIN;

/** The tables that are wider than their cards in the narrowest window of a desk, where their last columns are cut off. */
async function wideTables(page) {
  const before = page.viewportSize();
  await page.setViewportSize({ ...before, width: DESK_WIDTH_MIN });
  const wide = await page.$$eval('.table', (all) => {
    const over = ({ scrollWidth, clientWidth }) => scrollWidth - clientWidth;
    return all.filter((card) => over(card) > 0).map((card) => `a table ${over(card)} px wider than its card: ${card.innerText.slice(0, 60)}`);
  });
  await page.setViewportSize(before);
  return wide;
}

/** What is wrong with a page in its window, by axe-core too if it is audited. */
async function faults(page, path, isAudited) {
  await page.goto(`${BASE}${path}`);
  const width = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  const found = isAudited ? await findings(page) : [];
  if (width > 0) found.push(`${width} px wider than its window`);
  const tall = await page.$$eval(
    '.button, .badge',
    (all, max) => all.filter(({ clientHeight }) => clientHeight > max).map(({ textContent }) => textContent),
    BUTTON_HEIGHT_MAX,
  );
  found.push(...tall.map((text) => `a word is broken in ${text}`));
  if (!isPhone(page)) found.push(...(await wideTables(page)));
  if ((await page.locator('h1').count()) !== 1) found.push('not one h1');
  return found.map((fault) => `${path}: ${fault}`);
}

async function look(browser, paths, { locale, viewport, colorScheme, isAudited, isSignedIn = true }) {
  const { context, page, wrong } = await freshPage(browser, { locale, viewport, colorScheme });
  if (isSignedIn) await signIn(page);
  wrong.length = 0;
  const found = [];
  for (const path of paths) {
    found.push(...(await faults(page, path, isAudited)));
    const name = [kind(path).replaceAll(/\W+/g, '-'), locale.slice(0, 2), viewport.width, colorScheme];
    await picture(page, name.join('.'));
  }
  await context.close();
  const missing = wrong.filter((line) => !line.includes('404'));
  assert.deepEqual([...found, ...missing], []);
}

suite(async (step) => {
  const home = mkdtempSync(join(tmpdir(), 'chromium-'));
  const browser = await launch(home);
  try {
    await api('PUT', `platform/v1/channels/${streamer.channelId}/operator-role`, { role: 'admin' });
    const role = { userRole: 'STREAMING_CHANNEL_MANAGER' };
    await api('PUT', `platform/v1/channels/${viewer.channelId}/managers/${streamer.channelId}`, role);
    await api('PUT', 'platform/v1/applications/drops/webhook', WEBHOOK);
    await api('POST', 'trigger/claim', { campaign: 'first-voyage', reward: 'sail', viewer: 'nuri' });
    const paths = await step('links lead to every page', () => everyPage(browser));
    console.log(`# ${paths.length} pages: ${paths.join(' ')}`);
    // axe-core takes most of the time, so two of four have each language, width and color scheme once.
    for (const [locale, viewport, colorScheme, isAudited] of [
      ['ko-KR', PHONE, 'dark', true],
      ['ko-KR', DESK, 'light', false],
      ['en-US', PHONE, 'dark', false],
      ['en-US', DESK, 'light', true],
    ]) {
      const options = { locale, viewport, colorScheme, isAudited };
      const where = `${locale}, ${viewport.width} px, ${colorScheme}`;
      const sixth = Math.ceil(paths.length / 6);
      for (const part of [0, 1, 2, 3, 4, 5]) {
        const some = paths.slice(part * sixth, (part + 1) * sixth);
        const promise = isAudited ? 'fit and are accessible' : 'fit';
        await step(`pages ${promise}: ${where}, part ${part + 1}`, () => look(browser, some, options));
      }
      const signedOut = { ...options, isSignedIn: false };
      await step(`pages without a sign-in: ${where}`, () => look(browser, SIGNED_OUT, signedOut));
    }
  } finally {
    await browser.close();
    rmSync(home, { recursive: true, force: true });
  }
});
