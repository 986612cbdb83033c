'use strict';
// Chromium with the options of the suites.
const assert = require('node:assert/strict');
const { existsSync } = require('node:fs');
const { chromium } = require('playwright-core');

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
// Without these options the browser contacts its vendor at every start.
const QUIET = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

/** Starts a browser with its profile in the folder `home`, and with these options besides. */
function launch(home, options = []) {
  assert.ok(CHROMIUM, 'Chromium is not installed');
  return chromium.launch({ executablePath: CHROMIUM, args: [...QUIET, ...options], env: { ...process.env, HOME: home } });
}

module.exports = { launch };
