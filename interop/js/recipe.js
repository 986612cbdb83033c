'use strict';
// The official guide's recipe, end to end: sign-in, tokens, the user, a session, every event type, goodbye.
//
//   node recipe.js CLIENT TRANSPORTS
//
// CLIENT is an alias of package.json (socket.io-client-2.0.3), TRANSPORTS is websocket, polling, or default: the
// client's own choice, which is polling and then an upgrade.
const assert = require('node:assert/strict');
const { Inbox } = require('./lib/inbox.js');
const { signIn } = require('./lib/signin.js');
const { suite, withDeadline } = require('./lib/tap.js');
const w = require('./lib/world.js');

const [clientName, transports = 'default'] = process.argv.slice(2);
const io = require(clientName);

const TEXT = '안녕하세요 👋🏽 가족 👨‍👩‍👧‍👦 한글';
const AWKWARD = '"따옴표" \\ 역슬래시 \u2028 줄 <b>&amp;</b> e\u0301 𠮷 🇰🇷 끝';
const STATE = '상태 a&b=c?d#e+f%2B';
const BURST = 10; // chat messages sent while a client with default transports is upgrading
const CONNECT_DEADLINE_MS = 10_000;
const POLL_MS = 50; // between two checks of a condition

const { demo, streamer, viewer } = w;
const channel = `channels/${streamer.channelId}`;

function connect(url) {
  const options = { reconnection: false, 'force new connection': true, 'connect timeout': 3000 };
  if (transports !== 'default') options.transports = [transports];
  const inbox = new Inbox();
  const socket = io.connect(url, options);
  for (const name of ['SYSTEM', 'CHAT', 'DONATION', 'SUBSCRIPTION']) {
    socket.on(name, (...args) => {
      if (args.length !== 1 || typeof args[0] !== 'string') throw new Error(`${name} is not one JSON string`);
      inbox.push(name, JSON.parse(args[0]));
    });
  }
  return { socket, inbox };
}

/** How a connection attempt ends: 'connect' or the name of the event that reported a failure. */
function outcome(socket) {
  const names = ['connect', 'connect_error', 'connect_timeout', 'error', 'disconnect'];
  const first = new Promise((resolve) => names.forEach((name) => socket.on(name, () => resolve(name))));
  return withDeadline(first, CONNECT_DEADLINE_MS, 'the connection attempt to end');
}

async function until(what, holds) {
  const end = performance.now() + CONNECT_DEADLINE_MS;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `still not: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function signInSteps(step) {
  await step('a denied consent comes back with error and state', async () => {
    assert.deepEqual(await signIn(demo, streamer, STATE, 'deny'), { error: 'access_denied', state: STATE });
  });
  const code = await step('an allowed consent comes back with code and state', async () => {
    const answer = await signIn(demo, streamer, STATE);
    assert.deepEqual(Object.keys(answer).sort(), ['code', 'state']);
    assert.equal(answer.state, STATE);
    return answer.code;
  });
  const first = await step('the code buys tokens', async () => {
    const token = w.content(await w.tokenByCode(demo, code, STATE));
    assert.deepEqual(Object.keys(token).sort(), ['accessToken', 'expiresIn', 'refreshToken', 'tokenType']);
    assert.equal(token.tokenType, 'Bearer');
    assert.equal(token.expiresIn, '86400');
    return token;
  });
  await step('the code works once', () => w.refused(w.tokenByCode(demo, code, STATE), 400));
  const token = await step('the refresh token buys new tokens and names the scopes', async () => {
    const refreshed = w.content(await w.tokenByRefresh(demo, first.refreshToken));
    assert.notEqual(refreshed.accessToken, first.accessToken);
    assert.notEqual(refreshed.refreshToken, first.refreshToken);
    assert.ok(refreshed.scope.includes('채팅 메시지 쓰기'), refreshed.scope);
    return refreshed;
  });
  await step('the refresh token works once', () => {
    return w.refused(w.tokenByRefresh(demo, first.refreshToken), 401, 'INVALID_TOKEN');
  });
  return token.accessToken;
}

async function readSteps(step, token) {
  await step('users/me is the person who signed in', async () => {
    const { channelId, channelName } = streamer;
    assert.deepEqual(await w.get('/open/v1/users/me', w.asUser(token)), { channelId, channelName });
  });
  await step('channels finds two and leaves the unknown one out', async () => {
    const channelIds = [streamer.channelId, 'no-such-channel', viewer.channelId].join(',');
    const { data } = await w.get('/open/v1/channels', w.asClient(demo), { channelIds });
    assert.deepEqual(data.map(({ channelId }) => channelId).sort(), [streamer.channelId, viewer.channelId].sort());
    for (const { channelName, followerCount, verifiedMark } of data) {
      assert.deepEqual([typeof channelName, typeof followerCount, typeof verifiedMark], ['string', 'number', 'boolean']);
    }
  });
}

async function connectSteps(step, token) {
  const url = await step('sessions/auth gives a URL', async () => (await w.get('/open/v1/sessions/auth', w.asUser(token))).url);
  const { socket, inbox } = connect(url);
  await step('the client connects', async () => assert.equal(await outcome(socket), 'connect'));
  const sessionKey = await step('SYSTEM connected carries the session key', async () => {
    const { data } = await inbox.system('connected');
    assert.equal(typeof data.sessionKey, 'string');
    return data.sessionKey;
  });
  await step('the same URL is refused a second time', async () => {
    const handshake = new URL(url);
    handshake.pathname = '/socket.io/';
    handshake.searchParams.set('EIO', '3');
    handshake.searchParams.set('transport', 'polling');
    await w.refused(w.request('GET', handshake, {}), 401);
    const again = connect(url).socket;
    assert.match(await outcome(again), /^(connect_error|error)$/);
    again.close();
  });
  return { socket, inbox, sessionKey };
}

async function subscribeSteps(step, { inbox, sessionKey }, token) {
  const bodies = { chat: undefined, donation: 'null', subscription: '""' }; // the bodies of real clients
  for (const [kind, body] of Object.entries(bodies)) {
    await step(`subscribe ${kind} is answered by SYSTEM subscribed`, async () => {
      await w.post(`/open/v1/sessions/events/subscribe/${kind}`, w.asUser(token), { sessionKey }, body);
      const { data } = await inbox.system('subscribed', kind.toUpperCase());
      assert.deepEqual(data, { eventType: kind.toUpperCase(), channelId: streamer.channelId });
    });
  }
}

async function transportSteps(step, { socket, inbox }) {
  const transport = () => socket.io.engine.transport.name;
  if (transports !== 'default') {
    await step(`the transport is ${transports}`, () => assert.equal(transport(), transports));
    return;
  }
  await step(`${BURST} messages around the upgrade arrive once each, in order`, async () => {
    const sent = Array.from({ length: BURST }, (_, number) => `업그레이드 ${number}`);
    for (const message of sent) {
      await w.platform(`${channel}/chats`, { senderChannelId: viewer.channelId, message });
    }
    await inbox.chat(sent.at(-1));
    assert.deepEqual(inbox.named('CHAT').map(({ content }) => content), sent);
  });
  await step('the client ends up on websocket', () => until('on websocket', () => transport() === 'websocket'));
}

async function eventSteps(step, { inbox }, token) {
  for (const message of [TEXT, AWKWARD]) {
    await step(`a message sent with chats/send arrives unchanged: ${message.slice(0, 12)}…`, async () => {
      const { messageId } = await w.post('/open/v1/chats/send', w.asUser(token), {}, JSON.stringify({ message }));
      assert.equal(typeof messageId, 'string');
      const chat = await inbox.chat(message);
      assert.equal(chat.channelId, streamer.channelId);
      assert.equal(chat.senderChannelId, streamer.channelId);
      assert.equal(chat.profile.nickname, streamer.channelName);
      assert.ok(Array.isArray(chat.profile.badges));
      assert.equal(chat.userRoleCode, 'streamer');
      assert.equal(typeof chat.chatChannelId, 'string');
      assert.deepEqual(chat.emojis, {});
      assert.ok(Number.isSafeInteger(chat.messageTime));
    });
  }
  await step("a viewer's message arrives as theirs", async () => {
    const message = '시청자 인사 🙌';
    await w.platform(`${channel}/chats`, { senderChannelId: viewer.channelId, message });
    const chat = await inbox.chat(message);
    assert.equal(chat.senderChannelId, viewer.channelId);
    assert.equal(chat.userRoleCode, 'common_user');
  });
  await step('a donation arrives, its amount a string', async () => {
    const donation = { donationType: 'CHAT', payAmount: '1000', donationText: '후원합니다 💸' };
    await w.platform(`${channel}/donations`, { ...donation, donatorChannelId: viewer.channelId });
    const { emojis, ...rest } = await inbox.event('DONATION');
    const donator = { donatorChannelId: viewer.channelId, donatorNickname: viewer.channelName };
    assert.deepEqual(rest, { ...donation, ...donator, channelId: streamer.channelId });
    assert.deepEqual(emojis, {});
  });
  await step('a subscription arrives', async () => {
    const subscription = { subscriberChannelId: viewer.channelId, tierNo: 2, tierName: '무대 뒤', month: 3 };
    await w.platform(`${channel}/subscriptions`, subscription);
    const expected = { ...subscription, subscriberNickname: viewer.channelName, channelId: streamer.channelId };
    assert.deepEqual(await inbox.event('SUBSCRIPTION'), expected);
  });
}

async function goodbyeSteps(step, { socket, inbox, sessionKey }, token) {
  await step('after SYSTEM unsubscribed nothing of that kind comes', async () => {
    await w.post('/open/v1/sessions/events/unsubscribe/subscription', w.asUser(token), { sessionKey });
    await inbox.system('unsubscribed', 'SUBSCRIPTION');
    const late = { subscriberChannelId: viewer.channelId, tierNo: 1, tierName: '객석', month: 4 };
    await w.platform(`${channel}/subscriptions`, late);
    await w.platform(`${channel}/chats`, { senderChannelId: viewer.channelId, message: '표지' });
    await inbox.chat('표지'); // events of a channel are in order, so a subscription event would have arrived before this
    assert.equal(inbox.named('SUBSCRIPTION').length, 1);
  });
  await step('revoking the token sends one SYSTEM message for each open subscription', async () => {
    await w.revoke(demo, token);
    await Promise.all([inbox.system('revoked', 'CHAT'), inbox.system('revoked', 'DONATION')]);
  });
  await step('the revoked token is refused', () => {
    return w.refused(w.request('GET', w.address('/open/v1/users/me'), w.asUser(token)), 401, 'INVALID_TOKEN');
  });
  await step('every change has exactly one SYSTEM message', () => {
    const messages = inbox.named('SYSTEM').map(({ type, data }) => [type, data.eventType].join(' ').trim());
    const revoked = messages.splice(5).sort();
    assert.deepEqual(messages, ['connected', 'subscribed CHAT', 'subscribed DONATION', 'subscribed SUBSCRIPTION', 'unsubscribed SUBSCRIPTION']);
    assert.deepEqual(revoked, ['revoked CHAT', 'revoked DONATION']);
  });
  await step('the session is listed as disconnected after the client has gone', async () => {
    socket.close();
    const { code } = await signIn(demo, streamer, 'again');
    const { accessToken } = w.content(await w.tokenByCode(demo, code, 'again'));
    const listed = async () => {
      const { data } = await w.get('/open/v1/sessions', w.asUser(accessToken));
      return data.find((session) => session.sessionKey === sessionKey);
    };
    assert.ok(await listed(), 'the session is not in the list');
    await until('disconnectedDate is set', async () => (await listed()).disconnectedDate !== null);
  });
}

suite(async (step) => {
  const token = await signInSteps(step);
  await readSteps(step, token);
  const session = await connectSteps(step, token);
  await subscribeSteps(step, session, token);
  await transportSteps(step, session);
  await eventSteps(step, session, token);
  await goodbyeSteps(step, session, token);
});
