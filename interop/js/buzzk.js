'use strict';
// buzzk 2.3.2 as its users run it, on the profile `observed`.
const assert = require('node:assert/strict');
const { signIn } = require('./lib/signin.js');
const { suite, withDeadline } = require('./lib/tap.js');
const w = require('./lib/world.js');

const values = require('buzzk/lib/val.js');
if (values.chzzkAPIURL === `${w.world.baseUrl}/`) {
  // The server has the built-in host, and nothing is patched. buzzk queries a code host for its newest version when it
  // is loaded, which fails offline.
  process.on('unhandledRejection', () => {});
} else {
  // Tests must stay on this machine.
  require('axios').get = () => Promise.resolve({ status: 204 });
  values.chzzkAPIURL = `${w.world.baseUrl.replace(/\/+$/, '')}/`; // the other modules of buzzk read this when they are loaded
}
const buzzk = require('buzzk');

const TEXT = '안녕하세요 👋🏽 가족 👨‍👩‍👧‍👦 한글';
const MESSAGE_DEADLINE_MS = 10_000;
const { demo, streamer, viewer } = w;
const channel = `channels/${streamer.channelId}`;

/** The first value given to the callback that `listen` registers. */
function first(what, listen, matches = () => true) {
  const arrival = new Promise((resolve) => listen((value) => matches(value) && resolve(value)));
  return withDeadline(arrival, MESSAGE_DEADLINE_MS, what);
}

async function tokenSteps(step) {
  const code = await step('signing in with the one state that buzzk knows', async () => {
    const answer = await signIn(demo, streamer, values.state);
    assert.equal(answer.state, values.state);
    return answer.code;
  });
  const bought = await step('oauth.get buys tokens with the code', async () => {
    const token = await buzzk.oauth.get(code);
    assert.ok(token?.access && token.refresh);
    assert.equal(token.expireIn, 86400);
    return token;
  });
  const token = await step('oauth.refresh buys new ones', async () => {
    const token = await buzzk.oauth.refresh(bought.refresh);
    assert.ok(token?.access && token.access !== bought.access);
    return token;
  });
  return token.access;
}

async function channelSteps(step, access) {
  const isStreamer = (found) => {
    assert.equal(found?.channelID, streamer.channelId);
    assert.equal(found.name, streamer.channelName);
    assert.equal(typeof found.follower, 'number');
  };
  await step('oauth.resolve finds who signed in', async () => isStreamer(await buzzk.oauth.resolve(access)));
  await step('channel.get finds a channel', async () => isStreamer(await buzzk.channel.get(streamer.channelId)));
}

async function chatSteps(step, access) {
  const chat = new buzzk.chat(access);
  await step('chat.connect connects and subscribes', async () => assert.equal(await chat.connect(), true));
  await step('a message sent with chat.send comes back through onMessage unchanged', async () => {
    const arrival = first('the message', (callback) => chat.onMessage(callback), ({ message }) => message === TEXT);
    assert.equal(await chat.send(TEXT), true);
    const { author, time } = await arrival;
    assert.deepEqual([author.id, author.name], [streamer.channelId, streamer.channelName]);
    assert.ok(Number.isSafeInteger(time));
  });
  await step("a viewer's message and a donation arrive", async () => {
    const message = first('the message', (callback) => chat.onMessage(callback), ({ message }) => message === '하나');
    await w.platform(`${channel}/chats`, { senderChannelId: viewer.channelId, message: '하나' });
    assert.equal((await message).author.id, viewer.channelId);
    const donation = first('the donation', (callback) => chat.onDonation(callback));
    const body = { donationType: 'CHAT', payAmount: '5000', donationText: '둘 🎉', donatorChannelId: viewer.channelId };
    await w.platform(`${channel}/donations`, body);
    const { amount, author, message: text } = await donation;
    assert.deepEqual([amount, author.name, text], ['5000', viewer.channelName, '둘 🎉']);
  });
  await step('chat.setNotice registers a notice', async () => assert.equal(await chat.setNotice(TEXT), true));
  await step('chat.disconnect says goodbye', async () => assert.equal(await chat.disconnect(), true));
}

suite(async (step) => {
  buzzk.auth(demo.clientId, demo.clientSecret);
  const access = await tokenSteps(step);
  await channelSteps(step, access);
  await chatSteps(step, access);
  await step('after revocation oauth.resolve finds nobody', async () => {
    await w.revoke(demo, access);
    assert.equal(await buzzk.oauth.resolve(access), null);
  });
});
