'use strict';
// The script of the studio in Chromium: the chat moves by itself, an act changes the page where it stands, names are suggested,
// and all of it works without the script too.
const assert = require('node:assert/strict');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { suite } = require('../js/lib/tap.js');
const w = require('../js/lib/world.js');
const { launch } = require('./chromium.js');
const { BASE, PHONE, api, findings } = require('./console_rig.js');

const { streamer, viewer } = w;
const CHAT = `${BASE}/studio/chat`;
// More messages than a phone shows.
const MESSAGES = 20;

const say = (message) =>
  api('POST', `platform/v1/channels/${streamer.channelId}/chats`, { senderChannelId: viewer.channelId, message });

/** A page of the streamer, on a phone, that counts its loads. */
async function openStudio(browser, options = {}) {
  const context = await browser.newContext({ viewport: PHONE, locale: 'en-US', ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const wrong = [];
  page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
  page.on('pageerror', (error) => wrong.push(error.message));
  await page.goto(`${BASE}/sign-in?next=/studio/chat`);
  await page.fill('input[name=login]', streamer.login);
  await page.fill('input[name=password]', streamer.password);
  await page.press('input[name=password]', 'Enter');
  await page.waitForURL(CHAT);
  const loads = { count: 0 };
  page.on('load', () => { loads.count += 1; });
  return { context, page, wrong, loads };
}

const row = (page, text) => page.locator('.chat li', { hasText: text });
const button = (place, name) => place.getByRole('button', { name, exact: true });
const top = async (place) => Math.round((await place.boundingBox()).y);

/** Presses a button of a message. The page says what was done, and neither loads nor moves. */
async function act({ page, loads }, message, name, said) {
  const before = { loads: loads.count, at: await top(message) };
  await button(message, name).click();
  await page.locator('#chat-done', { hasText: said }).waitFor();
  const after = { loads: loads.count, at: await top(message) };
  assert.deepEqual(after, before, name);
}

async function theChatIsModerated(browser) {
  for (let number = 1; number <= MESSAGES; number += 1) await say(`message ${number} of many`);
  const studio = await openStudio(browser);
  const { context, page, wrong } = studio;
  const message = row(page, 'message 5 of many');
  const later = row(page, 'message 4 of many');
  await button(message, 'Hide').scrollIntoViewIfNeeded();
  assert.ok((await page.evaluate(() => window.scrollY)) > 500, 'the message is far below');
  await act(studio, message, 'Hide', 'The message is hidden.');
  await message.getByText('Hidden', { exact: true }).waitFor();
  await act(studio, message, 'Show again', 'shown again');
  assert.equal(await message.getByText('Hidden', { exact: true }).count(), 0);
  await act(studio, message, 'Restrict', 'restricted');
  // The keyboard stands on what undoes the act.
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Lift restriction');
  // Every message of the author says so.
  for (const one of [message, later]) await one.getByText('Restricted', { exact: true }).waitFor();
  await act(studio, later, 'Lift restriction', 'lifted');
  assert.equal(await message.getByText('Restricted', { exact: true }).count(), 0);
  await act(studio, message, 'Restrict 1 min', 'restricted');
  await message.getByText('Restricted for a minute', { exact: true }).waitFor();
  await act(studio, message, 'Lift restriction', 'lifted');
  // A minute's restriction hides what its author said in the last one.
  await act(studio, message, 'Show again', 'shown again');
  await act(studio, message, 'Pin', 'notice');
  const notice = page.locator('#notice-now');
  await notice.getByText('message 5 of many').waitFor();
  await button(notice, 'Take it down').click();
  await notice.getByText('There is no notice.').waitFor();
  assert.deepEqual(await findings(page), []);
  assert.deepEqual([studio.loads.count, wrong], [0, []]);
  await context.close();
}

async function aNoticeIsWritten(browser) {
  const studio = await openStudio(browser);
  const { context, page, wrong } = studio;
  await page.locator('summary', { hasText: 'Write a notice' }).click();
  await page.fill('[name=message]', 'Back in five minutes');
  await page.press('[name=message]', 'Enter');
  await page.locator('#notice-now', { hasText: 'Back in five minutes' }).waitFor();
  assert.equal(await page.inputValue('[name=message]'), '', 'the form is empty again');
  assert.deepEqual([studio.loads.count, wrong], [0, []]);
  await context.close();
}

async function theChatMoves(browser) {
  const { context, page, wrong, loads } = await openStudio(browser);
  await say('Can you read me?');
  await row(page, 'Can you read me?').waitFor();
  assert.deepEqual([loads.count, wrong], [0, []]);
  // The page notices the end of the sign-in.
  await page.mouse.move(1, 1);
  await context.clearCookies();
  await page.waitForURL(`${BASE}/sign-in?next=*`);
  await context.close();
}

/** A name is suggested while it is typed, and a follower leads to the forms. */
async function peopleAreNamed(browser) {
  const { context, page, wrong } = await openStudio(browser);
  const { channelName } = await api('GET', `platform/v1/channels/${viewer.channelId}`);
  await page.goto(`${BASE}/studio/managers`);
  await page.locator('[data-suggest]').pressSequentially(channelName);
  await page.locator(`datalist option[value="${viewer.channelId}"]`).waitFor({ state: 'attached' });
  await api('PUT', `platform/v1/channels/${streamer.channelId}/followers/${viewer.channelId}`, {});
  await page.goto(`${BASE}/studio/followers`);
  await page.getByRole('link', { name: `Restrict: ${channelName}` }).click();
  await page.waitForURL(`${BASE}/studio/restrictions?person=*`);
  assert.equal(await page.inputValue('[name=targetChannelId]'), viewer.channelId);
  await Promise.all([page.waitForEvent('load'), button(page.locator('main'), 'Restrict').click()]);
  await Promise.all([page.waitForEvent('load'), button(page.locator('main'), `Lift: ${channelName}`).click()]);
  assert.deepEqual(wrong, []);
  await context.close();
}

/** Without the script a press loads the page at the message. */
async function withoutTheScript(browser) {
  for (let number = 1; number <= MESSAGES; number += 1) await say(`line ${number} of many`);
  const { context, page } = await openStudio(browser, { javaScriptEnabled: false });
  const message = row(page, 'line 7 of many');
  await Promise.all([page.waitForEvent('load'), button(message, 'Hide').click()]);
  assert.match(page.url(), /#m-/);
  const y = await top(message);
  assert.ok(y >= 0 && y < PHONE.height, `the message is at ${y}`);
  await Promise.all([page.waitForEvent('load'), button(message, 'Show again').click()]);
  await context.close();
}

suite(async (step) => {
  const home = mkdtempSync(join(tmpdir(), 'chromium-'));
  const browser = await launch(home);
  try {
    await step('a phone moderates without a reload or a jump, and takes it back', () => theChatIsModerated(browser));
    await step('a notice is written', () => aNoticeIsWritten(browser));
    await step('the chat moves by itself', () => theChatMoves(browser));
    await step('people are found by name', () => peopleAreNamed(browser));
    await step('without the script the page comes back at the message', () => withoutTheScript(browser));
  } finally {
    await browser.close();
    rmSync(home, { recursive: true, force: true });
  }
});
