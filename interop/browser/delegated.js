'use strict';
// The journey of a person who signs in at the operator's provider: there, back with an account, out, and in again.
const assert = require('node:assert/strict');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { callback, entry, freePort, startProvider, startService } = require('../js/lib/provider.js');

const PAGES_MAX = 10;
const SLOW_MS = 15_000;

const path = (page) => new URL(page.url()).pathname;

/** Presses a button, and waits for the provider, or for the page behind the sign-in. */
async function press(page, button, base, issuer) {
  const isEnd = ({ origin, pathname }) => origin === issuer || (origin === base && !pathname.startsWith('/sign-in'));
  await button.click();
  await page.waitForURL(isEnd, { timeout: SLOW_MS });
  await page.waitForLoadState('load');
}

/** Answers the pages of the provider until the browser is back. */
async function passProvider(page, login, base, issuer) {
  for (let pages = 0; page.url().startsWith(issuer); pages += 1) {
    assert.ok(pages < PAGES_MAX, page.url());
    const field = page.locator('[name=login]');
    if (await field.count()) {
      await field.fill(login);
      await page.fill('[name=password]', 'anything');
    }
    const before = page.url();
    await page.locator('[type=submit]').first().click();
    await page.waitForURL((url) => url.href !== before, { timeout: SLOW_MS });
    await page.waitForLoadState('load');
  }
  assert.ok(page.url().startsWith(base), page.url());
}

/** Starts a provider and a service without passwords. */
async function startDelegation() {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-delegated-'));
  const [providerPort, port] = [await freePort(), await freePort()];
  const issuer = `http://127.0.0.1:${providerPort}`;
  const provider = await startProvider(issuer, providerPort, { redirect_uris: [callback(port, 'company')] });
  const file = join(folder, 'upstreams.yaml');
  writeFileSync(file, `upstreams:\n${entry('company', issuer)}`);
  const { base, child } = await startService(join(folder, 'data'), port, file);

  async function journey(browser, options) {
    const login = options.javaScriptEnabled ? 'script' : 'plain';
    const context = await browser.newContext({ locale: 'en-US', ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(SLOW_MS);
    const toProvider = page.locator('form[action^="/sign-in/upstream/company"] button');
    // A page of the service asks for the sign-in, and is shown after it.
    await page.goto(`${base}/developers`);
    assert.equal(path(page), '/sign-in');
    assert.equal(await page.locator('[type=password]').count(), 0);
    await press(page, toProvider, base, issuer);
    await passProvider(page, login, base, issuer);
    assert.equal(path(page), '/developers', await page.textContent('body'));
    await page.goto(`${base}/account`);
    assert.match(await page.textContent('main'), new RegExp(`${login}@example\\.com`));
    // Out, and in again. The provider still knows the person, and the account is the same.
    await page.locator('form[action="/sign-out"]').evaluate((form) => form.closest('details')?.setAttribute('open', ''));
    await Promise.all([page.waitForEvent('load'), page.locator('form[action="/sign-out"] button').click()]);
    await page.goto(`${base}/account`);
    assert.equal(path(page), '/sign-in');
    await press(page, toProvider, base, issuer);
    await passProvider(page, 'unused', base, issuer);
    assert.equal(path(page), '/account');
    assert.match(await page.textContent('main'), new RegExp(`${login}@example\\.com`));
    // A person of another profile has no account here, and may choose another one at the provider.
    const other = await browser.newContext({ locale: 'en-US', ...options });
    const stranger = await other.newPage();
    await stranger.goto(`${base}/account`);
    assert.equal(path(stranger), '/sign-in');
    await press(stranger, stranger.locator('form[action^="/sign-in/upstream/company"] button'), base, issuer);
    await stranger.locator('a', { hasText: /cancel/i }).first().click();
    await stranger.waitForURL((url) => url.origin === base, { timeout: SLOW_MS });
    await stranger.waitForLoadState('load');
    await stranger.goto(`${base}/account`);
    assert.equal(path(stranger), '/sign-in');
    await other.close();
    await context.close();
  }

  function stop() {
    child.kill('SIGTERM');
    provider.close();
    provider.closeAllConnections();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
  return { journey, stop };
}

module.exports = { startDelegation };
