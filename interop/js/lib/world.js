'use strict';
// The seeded world that `stagedoor dev --json` printed, and HTTP calls to it.
const assert = require('node:assert/strict');
const { randomUUID } = require('node:crypto');
const { readFileSync } = require('node:fs');

const REQUEST_DEADLINE_MS = 15_000;

const world = JSON.parse(readFileSync(process.env.STAGEDOOR_WORLD, 'utf8'));
const demo = world.applications.find(({ name }) => name === 'demo');
const streamer = world.users[0];
const viewer = world.users.at(-1);

/** Sends a request and checks the rules of every answer: status equal to code, envelope, request id. */
async function request(method, address, headers, body) {
  const response = await fetch(address, {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(REQUEST_DEADLINE_MS),
  });
  const text = await response.text();
  const where = `${method} ${new URL(address).pathname} answered ${response.status} ${text}`;
  const answer = JSON.parse(text);
  assert.equal(answer.code, response.status, where);
  const keys = response.status === 200 ? ['code', 'content', 'message'] : ['code', 'message'];
  assert.deepEqual(Object.keys(answer).sort(), keys, where);
  assert.ok(response.headers.get('x-request-id'), `${where} without X-Request-Id`);
  return { ...answer, where };
}

function address(path, query = {}) {
  const url = new URL(path, world.baseUrl);
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
  return url;
}

const asUser = (token) => ({ Authorization: `Bearer ${token}` });
const asClient = (application) => ({ 'Client-Id': application.clientId, 'Client-Secret': application.clientSecret });

/** The `content` of an answer that must be a success. */
function content(answer) {
  assert.equal(answer.code, 200, answer.where);
  assert.equal(answer.message, null, answer.where);
  return answer.content;
}

async function get(path, headers, query) {
  return content(await request('GET', address(path, query), headers));
}

async function post(path, headers, query, body) {
  return content(await request('POST', address(path, query), headers, body));
}

/** Expects a refusal with this status and, when given, this message. */
async function refused(promise, code, message) {
  const answer = await promise;
  assert.equal(answer.code, code, answer.where);
  if (message) assert.equal(answer.message, message, answer.where);
}

const tokenRequest = (body) => request('POST', address('/auth/v1/token'), {}, JSON.stringify(body));

function tokenByCode(application, code, state) {
  const { clientId, clientSecret } = application;
  return tokenRequest({ grantType: 'authorization_code', clientId, clientSecret, code, state });
}

function tokenByRefresh(application, refreshToken) {
  const { clientId, clientSecret } = application;
  return tokenRequest({ grantType: 'refresh_token', clientId, clientSecret, refreshToken });
}

function revoke(application, token) {
  const { clientId, clientSecret } = application;
  return post('/auth/v1/token/revoke', {}, {}, JSON.stringify({ clientId, clientSecret, token }));
}

/** A call of the platform API: a viewer's chat, a donation, a subscription. */
async function platform(path, body) {
  const base = world.platformUrl.replace(/\/+$/, '').replace(/\/platform\/v1$/, '');
  const headers = { Authorization: `Bearer ${world.operatorKey}`, 'Idempotency-Key': randomUUID() };
  return content(await request('POST', new URL(`${base}/platform/v1/${path}`), headers, JSON.stringify(body)));
}

module.exports = {
  world, demo, streamer, viewer,
  request, address, asUser, asClient, content, get, post, refused,
  tokenByCode, tokenByRefresh, revoke, platform,
};
