'use strict';
// The keyboard alone: everything is reached, the focus is visible and stays where it is.
const assert = require('node:assert/strict');
const { api, freshPage } = require('./console_rig.js');

async function everythingIsReached({ browser }) {
  // The rows of the recording are left out.
  const { context, page, wrong } = await freshPage(browser, { path: '/?kind=clock' });
  for (const summary of await page.locator('.adder > summary').all()) await summary.click();
  const expected = await page.evaluate(() => {
    const all = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')];
    const reachable = all.filter((element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest('#records'));
    // Of a group of radio buttons the checked one is reached, and the arrows choose among them.
    const stops = reachable.filter((element) => element.type !== 'radio' || element.checked);
    stops.forEach((element, number) => { element.dataset.stop = number; });
    return stops.length;
  });
  await page.locator('.skip').focus();
  const reached = new Set(['0']);
  const hidden = [];
  for (let tabs = 0; tabs < expected + 40 && reached.size < expected; tabs += 1) {
    await page.keyboard.press('Tab');
    const { stop, isVisible, html } = await page.evaluate(() => {
      const element = document.activeElement;
      const shown = element.closest('.picker') && element.type === 'radio' ? element.nextElementSibling : element;
      const { outlineStyle, outlineWidth } = getComputedStyle(shown);
      const isVisible = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
      return { stop: element.dataset.stop, isVisible, html: element.outerHTML.slice(0, 120) };
    });
    if (stop !== undefined) reached.add(stop);
    if (stop !== undefined && !isVisible) hidden.push(html);
  }
  const missed = await page.evaluate((known) => [...document.querySelectorAll('[data-stop]')]
    .filter(({ dataset }) => !known.includes(dataset.stop)).map((element) => element.outerHTML.slice(0, 120)), [...reached]);
  assert.deepEqual({ missed, hidden }, { missed: [], hidden: [] });
  assert.deepEqual(wrong, []);
  await context.close();
}

async function liveUpdatesLeaveTheFocus({ browser }) {
  const { context, page, wrong } = await freshPage(browser);
  const focused = () => page.evaluate(() => document.activeElement.id);
  const unnamed = await page.evaluate(() => [...document.querySelectorAll('#chat-view, #fault-list, #network-list, #people-list, #due, #application-list, #webhook-list, #world-list, #run-list')]
    .flatMap((region) => [...region.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary, [tabindex]')])
    .filter(({ id }) => !id).map((element) => element.outerHTML.slice(0, 120)));
  assert.deepEqual(unnamed, [], 'only a control with an id keeps the focus');
  // The API's own calls are no news for the page. A trigger is.
  const chat = () => api('POST', 'trigger/chat', {});
  // A name is being typed while the list of worlds changes.
  await page.locator('#snapshot-main').fill('half a na');
  await page.evaluate(() => document.activeElement.setSelectionRange(4, 4));
  await api('POST', 'worlds', { name: 'beside' });
  await chat();
  await page.locator('#world-beside').waitFor();
  const kept = await page.evaluate(() => [document.activeElement.id, document.activeElement.value, document.activeElement.selectionStart]);
  assert.deepEqual(kept, ['snapshot-main', 'half a na', 4]);
  // A rule that is about to be removed, while another one comes.
  const { id } = await api('POST', 'faults', { match: { event: 'SUBSCRIPTION' }, do: { drop: true } });
  await chat();
  await page.locator(`#fault-${id}`).focus();
  const other = await api('POST', 'faults', { match: { event: 'SUBSCRIPTION' }, do: { late: '1s' } });
  await chat();
  await page.locator(`#fault-${other.id}`).waitFor();
  assert.equal(await focused(), `fault-${id}`);
  await page.keyboard.press('Enter');
  await page.locator(`#fault-${id}`).waitFor({ state: 'detached' });
  assert.equal(await focused(), 'faults-title', 'the focus of a control that is gone goes to the heading');
  await api('DELETE', 'faults');
  await api('DELETE', 'worlds/beside');
  // The answer to a form is announced and takes no focus.
  await page.locator('#tokens-viewer-mina').focus();
  await page.keyboard.press('Enter');
  await page.locator('#result').getByText('accessToken').first().waitFor();
  assert.equal(await focused(), 'tokens-viewer-mina');
  assert.equal(await page.getAttribute('#result', 'aria-live'), 'polite');
  assert.deepEqual(wrong, []);
  await context.close();
}

module.exports = { everythingIsReached, liveUpdatesLeaveTheFocus };
