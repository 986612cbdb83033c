'use strict';
// A bot that greets who greets. It survives what `stagedoor doctor` does to it:
//
//   npm install && stagedoor doctor -- node bot.js
//
// Its settings are those of `stagedoor env`.
const { createHmac, timingSafeEqual } = require('node:crypto');
const { createServer } = require('node:http');
const io = require(process.env.SOCKET_IO_CLIENT ?? 'socket.io-client');

const EVENTS = ['chat', 'donation', 'subscription'];
const CALL_DEADLINE_MS = 15_000;
const PAUSE_MAX_MS = 60_000;
const HANDLED_MAX = 1_000;
const WEBHOOK_AGE_MAX_MS = 5 * 60 * 1000;

const setting = (name) => process.env[`STAGEDOOR_${name}`];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The tokens are gone. Only the user can help. */
class SignInNeeded extends Error {}

/** One or two seconds at random, and twice as long after each failure, up to a minute. */
class Pauses {
  #ms = 0;

  async wait() {
    this.#ms = Math.min(this.#ms * 2 || 1000 + 1000 * Math.random(), PAUSE_MAX_MS);
    await sleep(this.#ms);
  }
}

let accessToken = setting('ACCESS_TOKEN');
let refreshToken = setting('REFRESH_TOKEN');
let refreshing = null;
const handled = new Set();

/** One HTTP exchange. Status 0 stands for a lost answer. */
async function exchange(method, path, headers, body) {
  try {
    const answer = await fetch(setting('BASE_URL') + path, {
      method,
      headers: { 'Content-Type': 'application/json', ...headers },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_DEADLINE_MS),
    });
    const { content, message } = await answer.json();
    return { status: answer.status, content, message, retryAfter: Number(answer.headers.get('Retry-After')) };
  } catch (error) {
    return { status: 0, message: error.cause?.message ?? error.message };
  }
}

/** Gets new tokens, once for all calls that wait for them. */
function refresh() {
  refreshing ??= refreshOnce().finally(() => (refreshing = null));
  return refreshing;
}

async function refreshOnce() {
  if (!refreshToken) throw new SignInNeeded('the user has to sign in again');
  const body = {
    grantType: 'refresh_token',
    clientId: setting('CLIENT_ID'),
    clientSecret: setting('CLIENT_SECRET'),
    refreshToken,
  };
  // A lost answer is repeated once. If the token was used up meanwhile, the repetition is refused.
  for (let turn = 0; turn < 2; turn += 1) {
    const { status, content, message } = await exchange('POST', '/auth/v1/token', {}, body);
    if (status === 200) {
      // A real bot writes both to its storage here, before anything else.
      ({ accessToken, refreshToken } = content);
      return;
    }
    console.log(`no new tokens: ${status} ${message}`);
    if (status >= 400 && status < 500) break;
    await sleep(1000);
  }
  refreshToken = null;
  throw new SignInNeeded('the user has to sign in again');
}

/** Makes a call until there is an answer that a repetition would not change. */
async function call(method, path, body) {
  const pauses = new Pauses();
  let hasRefreshed = false;
  for (;;) {
    const { status, content, message, retryAfter } = await exchange(
      method, path, { Authorization: `Bearer ${accessToken}` }, body,
    );
    if (status >= 200 && status < 300) return content;
    console.log(`${method} ${path.split('?')[0]}: ${status} ${message}`);
    if (status === 401 && !hasRefreshed) {
      await refresh();
      hasRefreshed = true;
    } else if (status === 401) {
      throw new SignInNeeded('the new token was refused');
    } else if (status === 429 && retryAfter > 0) {
      await sleep(retryAfter * 1000);
    } else if (status === 0 || status >= 500) {
      await pauses.wait();
    } else {
      return null;
    }
  }
}

/** Whether a message has not been handled. The last thousand are remembered. */
function isNew(message) {
  if (handled.has(message)) return false;
  handled.add(message);
  if (handled.size > HANDLED_MAX) handled.delete(handled.values().next().value);
  return true;
}

/** Lives through one session. Returns whether it was connected. */
async function session() {
  const { url } = (await call('GET', '/open/v1/sessions/auth')) ?? {};
  if (!url) return false;
  // The URL works once, so the library must not reconnect by itself.
  const socket = io.connect(url, { reconnection: false, forceNew: true, 'force new connection': true });
  let sessionKey = null;
  return new Promise((resolve, reject) => {
    const guarded = (work) => work.catch((error) => { socket.close(); reject(error); });
    const end = (why) => { console.log(`the session ended: ${why}`); socket.close(); resolve(sessionKey !== null); };
    ['connect_error', 'connect_timeout', 'error', 'disconnect'].forEach((name) => {
      socket.on(name, (reason) => end(`${name} ${reason?.message ?? reason}`));
    });
    socket.on('SYSTEM', (text) => {
      const { type, data } = JSON.parse(text);
      console.log(`SYSTEM ${type} ${data.eventType ?? ''}`);
      // A repeated message is handled once.
      if (type !== 'connected' || sessionKey === data.sessionKey) return;
      sessionKey = data.sessionKey;
      for (const event of EVENTS) {
        const key = encodeURIComponent(sessionKey);
        guarded(call('POST', `/open/v1/sessions/events/subscribe/${event}?sessionKey=${key}`));
      }
    });
    socket.on('CHAT', (text) => {
      const { channelId, content, messageTime, senderChannelId } = JSON.parse(text);
      if (!isNew(`${channelId} ${senderChannelId} ${messageTime}`)) return;
      if (content === '!hello' && senderChannelId !== setting('CHANNEL_ID')) {
        guarded(call('POST', '/open/v1/chats/send', { message: '안녕하세요!' }));
      }
    });
    socket.on('DONATION', (text) => console.log(`a donation of ${JSON.parse(text).payAmount} won`));
    socket.on('SUBSCRIPTION', (text) => console.log(`subscribed for ${JSON.parse(text).month} months`));
  });
}

/** Whether a webhook message is from the service, and new (docs/webhooks.md). */
function isGenuine(secret, id, timestamp, signature, body) {
  if (!(Math.abs(Date.now() - Date.parse(timestamp)) <= WEBHOOK_AGE_MAX_MS)) return false;
  const hex = createHmac('sha256', secret).update(id + timestamp).update(body).digest('hex');
  const [made, given] = [Buffer.from(`sha256=${hex}`), Buffer.from(signature)];
  return made.length === given.length && timingSafeEqual(made, given);
}

/** Receives webhook messages, where the bot has a webhook. */
function receive(url, secret) {
  const server = createServer(async (request, answer) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const header = (name) => request.headers[`service-event-message-${name}`] ?? '';
    const genuine = isGenuine(secret, header('id'), header('timestamp'), header('signature'), Buffer.concat(chunks));
    answer.writeHead(genuine ? 204 : 401).end();
  });
  server.listen(Number(new URL(url).port), '127.0.0.1');
}

async function main() {
  if (setting('WEBHOOK_URL')) receive(setting('WEBHOOK_URL'), setting('WEBHOOK_SECRET'));
  let pauses = new Pauses();
  for (;;) {
    if (await session()) pauses = new Pauses();
    await pauses.wait();
  }
}

main().catch((error) => {
  console.error(error instanceof SignInNeeded ? error.message : error);
  process.exit(1);
});
