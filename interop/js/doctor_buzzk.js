'use strict';
// A bot of a few lines with buzzk 2.3.2, for the doctor: connect, answer a greeting. Its settings are the variables that
// `stagedoor doctor` sets.

// buzzk queries a code host for its newest version when it is loaded. Tests must stay on this machine.
require('axios').get = () => Promise.resolve({ status: 204 });
const setting = (name) => process.env[`STAGEDOOR_${name}`];
const values = require('buzzk/lib/val.js');
values.chzzkAPIURL = `${setting('BASE_URL')}/`; // the other modules of buzzk read this when they are loaded
const buzzk = require('buzzk');

async function main() {
  buzzk.auth(setting('CLIENT_ID'), setting('CLIENT_SECRET'));
  const chat = new buzzk.chat(setting('ACCESS_TOKEN'));
  chat.onMessage(({ message }) => message === '!hello' && chat.send('안녕하세요!'));
  console.log('connected:', await chat.connect());
}

main();
