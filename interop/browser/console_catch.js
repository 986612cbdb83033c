'use strict';
// The first minute of a person without a server: from the link that `stagedoor dev` prints to tokens.
const assert = require('node:assert/strict');
const { once } = require('node:events');
const { DESK, PHONE, findings, freshPage, picture, stagedoor } = require('./console_rig.js');

/** Starts `stagedoor dev` as a person does, and reads its overview up to the commands to try. */
async function start() {
  const child = stagedoor(['dev', '--listen', '127.0.0.1:0', '--name', `browser-${process.pid}`]);
  let text = '';
  child.stdout.on('data', (chunk) => { text += chunk; });
  child.stderr.resume();
  await Promise.race([once(child, 'close'), new Promise((resolve) => {
    child.stdout.on('data', () => /trigger donation.*\n/.test(text) && resolve());
  })]);
  return { child, text };
}

async function fromThePrintedLinkToTokens({ browser }) {
  const { child, text } = await start();
  try {
    assert.ok(text.split('\n').length <= 24, `the overview fits a screen:\n${text}`);
    const link = new URL(text.match(/Sign in +(\S+)/)[1]);
    const base = link.origin;
    const path = `${link.pathname}${link.search}`;
    const key = text.match(/Operator key +(\S+)/)[1];
    const { context, page, wrong } = await freshPage(browser, { base, key, path, locale: 'ko-KR', viewport: PHONE });
    await page.fill('input[name=login]', 'streamer-haneul');
    await page.fill('input[name=password]', text.match(/password (\S+)/)[1]);
    await page.press('input[name=password]', 'Enter');
    await page.locator('[name=decision][value=allow]').click();
    await page.waitForURL(`${base}/sandbox/catch?*`);
    await page.getByRole('heading', { name: '코드가 도착했습니다' }).waitFor();
    assert.deepEqual(await findings(page), []);
    await picture(page, 'catch-code');
    await page.getByRole('button', { name: '코드를 토큰으로 교환' }).click();
    await page.getByRole('heading', { name: '토큰을 받았습니다' }).waitFor();
    await page.getByText(`curl ${base}/auth/v1/token`).waitFor();
    assert.deepEqual(await findings(page), []);
    await picture(page, 'catch-tokens');
    const token = await page.locator('[data-copy]').first().getAttribute('data-copy');
    const me = await fetch(`${base}/open/v1/users/me`, { headers: { Authorization: `Bearer ${token}` } });
    assert.equal((await me.json()).content.channelId, 'streamer-haneul');
    await page.locator('.copy').first().click();
    await page.getByText('복사함').waitFor();
    assert.deepEqual(wrong, []);
    await context.close();
    await thePagesAreReadable(browser, base, key);
  } finally {
    child.kill('SIGTERM');
    await once(child, 'close');
  }
}

/** The other pages, in both languages and schemes. */
async function thePagesAreReadable(browser, base, key) {
  const paths = ['/sandbox/catch', '/sandbox/catch?code=made-up&state=1', '/sandbox/catch?error=access_denied&state=1'];
  for (const [locale, colorScheme, viewport] of [['ko-KR', 'light', DESK], ['ko-KR', 'dark', PHONE], ['en-US', 'light', PHONE], ['en-US', 'dark', DESK]]) {
    const { context, page, wrong } = await freshPage(browser, { base, key, path: paths[0], locale, colorScheme, viewport });
    for (const [number, path] of paths.entries()) {
      if (number > 0) await page.goto(`${base}${path}`);
      assert.equal(await page.getAttribute('html', 'lang'), locale.slice(0, 2));
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= viewport.width, `${path} is ${width} px wide at ${viewport.width} px`);
      assert.deepEqual(await findings(page), [], `${path} ${locale} ${colorScheme}`);
      await picture(page, `catch-${number}-${viewport.width}-${colorScheme}`);
    }
    assert.deepEqual(wrong, []);
    await context.close();
  }
}

module.exports = { fromThePrintedLinkToTokens };
