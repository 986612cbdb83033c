'use strict';
// The sign-in pages in Chromium, for checks that need a browser: the policy allows the redirect, the keyboard reaches
// every control, nothing is loaded from other hosts, and the page cannot be framed.
const assert = require('node:assert/strict');
const { createServer } = require('node:http');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { suite } = require('../js/lib/tap.js');
const w = require('../js/lib/world.js');
const { launch } = require('./chromium.js');
const { findings } = require('./console_rig.js');

const { demo, streamer, viewer, world } = w;
const REDIRECT = demo.redirectUris[0];
const CALLBACK = new URL(REDIRECT);
const PHONE = { width: 390, height: 844 };

/** The application's side of the sign-in: a server that records the redirect. */
function callbackServer() {
  const visits = [];
  const server = createServer((request, response) => {
    if (request.url.startsWith(CALLBACK.pathname)) visits.push(new URL(request.url, REDIRECT));
    response.end('<!doctype html><title>callback</title>back at the application');
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(Number(CALLBACK.port), CALLBACK.hostname, () => resolve({ server, visits }));
  });
}

function authorizationAddress(state, extra = {}) {
  const query = new URLSearchParams({ clientId: demo.clientId, redirectUri: REDIRECT, state, ...extra });
  return `${world.authUrl}/account-interlock?${query}`;
}

/** A page of a new browser profile that records every forbidden action. */
async function freshPage(browser, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const wrong = [];
  const ours = [new URL(world.authUrl).origin, CALLBACK.origin];
  page.on('console', (message) => message.type() === 'error' && wrong.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => wrong.push(`script: ${error.message}`));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== 'data:' && !ours.includes(origin)) wrong.push(`request: ${request.url()}`);
  });
  return { context, page, wrong };
}

async function signInAndAllow({ browser, visits }, lang) {
  const { context, page, wrong } = await freshPage(browser, { locale: lang === 'ko' ? 'ko-KR' : 'en-US' });
  await page.goto(authorizationAddress(`상태-${lang}`));
  assert.equal(await page.getAttribute('html', 'lang'), lang);
  await page.fill('input[name=login]', streamer.login);
  await page.fill('input[name=password]', streamer.password);
  await page.press('input[name=password]', 'Enter');
  const text = await page.textContent('main, body');
  // Only Korean readers read the names, which are Korean.
  for (const scope of demo.scopes) assert.equal(text.includes(scope), lang === 'ko', scope);
  const allow = page.getByRole('button', { name: lang === 'ko' ? '허용' : 'Allow', exact: true });
  await Promise.all([page.waitForURL(`${REDIRECT}?*`), allow.click()]);
  const visit = visits.at(-1);
  assert.equal(visit.searchParams.get('state'), `상태-${lang}`);
  const tokens = w.content(await w.tokenByCode(demo, visit.searchParams.get('code'), `상태-${lang}`));
  assert.ok(tokens.accessToken);
  assert.deepEqual(wrong, []);
  await context.close();
}

async function deny({ browser, visits }) {
  const { context, page, wrong } = await freshPage(browser, { javaScriptEnabled: false });
  await page.goto(authorizationAddress('s1', { lang: 'en' }));
  await page.locator(`button[name=person][value="${viewer.login}"]`).click();
  const button = page.getByRole('button', { name: 'Deny', exact: true });
  await Promise.all([page.waitForURL(`${REDIRECT}?*`), button.click()]);
  const query = visits.at(-1).searchParams;
  assert.deepEqual([query.get('error'), query.get('state'), query.get('code')], ['access_denied', 's1', null]);
  assert.deepEqual(wrong, []);
  await context.close();
}

async function keyboard({ browser }) {
  const { context, page } = await freshPage(browser, { locale: 'ko-KR' });
  await page.goto(authorizationAddress('k'));
  assert.equal(await page.evaluate(() => document.activeElement.name), 'login');
  await page.keyboard.type(streamer.login);
  await page.keyboard.press('Tab');
  await page.keyboard.type(streamer.password);
  await page.keyboard.press('Enter');
  await page.waitForSelector('button[name=decision][value=allow]');
  const reached = new Set();
  for (let i = 0; i < 20; i += 1) {
    await page.keyboard.press('Tab');
    reached.add(await page.evaluate(() => document.activeElement.value ?? ''));
  }
  assert.ok(reached.has('allow') && reached.has('deny'), `Tab reached ${[...reached]}`);
  await context.close();
}

async function layout({ browser }) {
  for (const colorScheme of ['light', 'dark']) {
    const { context, page, wrong } = await freshPage(browser, { colorScheme, viewport: { width: 320, height: 640 } });
    await page.goto(authorizationAddress('l'));
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
    assert.equal(overflow, false, `the page is wider than 320 px in ${colorScheme} mode`);
    const dark = await page.evaluate(() => {
      const [r, g, b] = getComputedStyle(document.body).color.match(/[\d.]+/g).map(Number);
      return r + g + b > 382;
    });
    assert.equal(dark, colorScheme === 'dark', 'the text does not follow the colour scheme');
    assert.deepEqual(wrong, []);
    await context.close();
  }
}

async function phone({ browser }) {
  const { context, page, wrong } = await freshPage(browser, { viewport: PHONE, locale: 'en-US' });
  await page.goto(authorizationAddress('p'));
  await page.locator(`button[name=person][value="${streamer.login}"]`).click();
  for (const name of ['Allow', 'Deny']) {
    const { y, height } = await page.getByRole('button', { name, exact: true }).boundingBox();
    assert.ok(y >= 0 && y + height <= PHONE.height, `${name} is at ${y}`);
  }
  assert.deepEqual(await findings(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
}

/** Signs in as a person of the list, and opens the connected apps. */
async function openApps(browser, person, options) {
  const base = new URL(world.authUrl).origin;
  const opened = await freshPage(browser, { viewport: PHONE, locale: 'en-US', colorScheme: 'dark', ...options });
  await opened.page.goto(`${base}/account/apps`);
  await opened.page.locator(`button[name=person][value="${person.login}"]`).click();
  await opened.page.waitForURL(`${base}/account/apps`);
  return { ...opened, base };
}

async function appsAreLookedAt({ browser }) {
  const { context, page, wrong, base } = await openApps(browser, streamer);
  for (const path of ['/account/apps', `/account/apps/${demo.clientId}`, '/docs', '/missing']) {
    await page.goto(`${base}${path}`);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= PHONE.width, `${path} is ${width} px wide`);
    assert.deepEqual(await findings(page), [], path);
  }
  assert.deepEqual(wrong.filter((line) => !line.includes('404')), []);
  await context.close();
}

async function anAppIsWithdrawn({ browser }) {
  const { context, page, wrong, base } = await openApps(browser, viewer, { javaScriptEnabled: false });
  await page.getByRole('link', { name: demo.name, exact: true }).click();
  await page.getByRole('heading', { name: demo.name, exact: true }).waitFor();
  await page.locator('summary', { hasText: 'Remove access' }).click();
  await page.getByRole('button', { name: 'Remove access' }).click();
  await page.getByText('The app can no longer access your account.').waitFor();
  assert.equal(await page.getByRole('link', { name: demo.name, exact: true }).count(), 0);
  await page.locator('.menu > summary').click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  // The start page of a sandbox is its console.
  await page.waitForURL(`${base}/sign-in`);
  await page.goto(`${base}/account/apps`);
  assert.ok(page.url().startsWith(`${base}/sign-in?next=`), page.url());
  assert.deepEqual(wrong, []);
  await context.close();
}

async function framing({ browser }) {
  const { context, page } = await freshPage(browser);
  await page.goto(REDIRECT);
  const refused = page.waitForEvent('console', (message) => /frame/i.test(message.text()));
  await page.evaluate((src) => {
    const frame = document.createElement('iframe');
    frame.src = src;
    document.body.append(frame);
  }, authorizationAddress('f'));
  await refused;
  await context.close();
}

async function strangers({ browser }) {
  const { context, page } = await freshPage(browser);
  for (const address of [
    authorizationAddress('e').replace(`clientId=${demo.clientId}`, 'clientId=nobody'),
    `${world.authUrl}/account-interlock?${new URLSearchParams({ clientId: demo.clientId, redirectUri: `${REDIRECT}/`, state: 'e' })}`,
  ]) {
    const response = await page.goto(address);
    assert.equal(response.status(), 400);
    assert.match(response.headers()['content-type'], /^text\/html/);
    assert.equal(await page.locator('form').count(), 0);
  }
  await context.close();
}

suite(async (step) => {
  const profile = mkdtempSync(join(tmpdir(), 'stagedoor-browser-'));
  const { server, visits } = await callbackServer();
  const browser = await launch(profile);
  const rig = { browser, visits };
  try {
    await step('a user signs in and allows, in Korean', () => signInAndAllow(rig, 'ko'));
    await step('a user signs in and allows, in English', () => signInAndAllow(rig, 'en'));
    await step('a user picked from the list denies, without JavaScript', () => deny(rig));
    await step('the keyboard alone is enough', () => keyboard(rig));
    await step('the page fits 320 px, light and dark', () => layout(rig));
    await step('both buttons are in view on a phone', () => phone(rig));
    await step('the pages fit a phone, and axe-core finds nothing serious', () => appsAreLookedAt(rig));
    await step('an app is withdrawn, without JavaScript', () => anAppIsWithdrawn(rig));
    await step('no other site can frame the page', () => framing(rig));
    await step('an unknown client or address gets an error page, not a redirect', () => strangers(rig));
  } finally {
    await browser.close();
    server.close();
    rmSync(profile, { recursive: true, force: true });
  }
});
