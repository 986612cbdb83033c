'use strict';
// Submits the sign-in and consent pages like a browser without JavaScript: parses the forms, sends every field back,
// and keeps cookies. It depends only on the documented names login, password and decision.
const assert = require('node:assert/strict');
const { world } = require('./world.js');

const HOPS = 10; // maximum number of pages and redirects
const REQUEST_DEADLINE_MS = 15_000;

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
function unescape(text) {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|([a-z]+));/gi, (whole, hex, decimal, name) => {
    if (name) return ENTITIES[name.toLowerCase()] ?? whole;
    return String.fromCodePoint(parseInt(hex ?? decimal, hex ? 16 : 10));
  });
}

function attributes(source) {
  const found = {};
  for (const [, name, double, single, bare] of source.matchAll(/([\w-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g)) {
    found[name.toLowerCase()] = unescape(double ?? single ?? bare ?? '');
  }
  return found;
}

/** Every form of a page: its target, its fields, its submit buttons. */
function forms(html) {
  return [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map(([, tag, inside]) => {
    const controls = [...inside.matchAll(/<(input|button)\b([^>]*)>/gi)].map(([, element, rest]) => {
      const control = attributes(rest);
      return { type: element.toLowerCase() === 'button' ? 'submit' : 'text', value: '', ...control };
    });
    const { action = '', method = 'get' } = attributes(tag);
    return {
      action,
      method: method.toUpperCase(),
      fields: controls.filter(({ type }) => type !== 'submit'),
      buttons: controls.filter(({ type }) => type === 'submit'),
    };
  });
}

const loginForm = ({ fields }) => ['login', 'password'].every((wanted) => fields.some(({ name }) => name === wanted));

/** The data that a browser would send: the filled-in fields, and the pressed button if it has a name. */
function submission(form, filled, pressed) {
  const body = new URLSearchParams();
  for (const { name, type, value, checked } of form.fields) {
    if (!name || ((type === 'radio' || type === 'checkbox') && checked === undefined)) continue;
    body.append(name, filled[name] ?? value);
  }
  if (pressed?.name) body.append(pressed.name, pressed.value);
  return body;
}

class Browser {
  constructor() {
    this.cookies = new Map();
  }

  async open(url, body) {
    const headers = { Accept: 'text/html' };
    if (this.cookies.size) headers.Cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const signal = AbortSignal.timeout(REQUEST_DEADLINE_MS);
    const response = await fetch(url, { method: body ? 'POST' : 'GET', headers, body, redirect: 'manual', signal });
    for (const cookie of response.headers.getSetCookie()) this.keep(cookie);
    return { url, status: response.status, location: response.headers.get('location'), html: await response.text() };
  }

  keep(cookie) {
    const [pair, ...rest] = cookie.split(';');
    const [, name, value] = pair.match(/^([^=]+)=(.*)$/);
    if (rest.some((attribute) => /^\s*max-age=0\s*$/i.test(attribute))) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

function nextRequest(page, user, decision) {
  const found = forms(page.html);
  const press = (form) => form.buttons.find(({ name, value }) => name === 'decision' && value === decision);
  const consent = found.find(press);
  if (consent) return [consent, submission(consent, {}, press(consent))];
  const login = found.find(loginForm);
  assert.ok(login, `a page with neither a consent nor a sign-in form:\n${page.html}`);
  const filled = { login: user.login, password: user.password };
  return [login, submission(login, filled, login.buttons.find(({ name }) => !name))];
}

/**
 * Signs `user` in for `application` and answers "allow" or "deny".
 * Returns the query of the redirect: `code` and `state`, or `error` and `state`.
 */
async function signIn(application, user, state, decision = 'allow') {
  const redirectUri = application.redirectUris[0];
  const browser = new Browser();
  const start = new URL(`${world.authUrl.replace(/\/+$/, '')}/account-interlock`);
  start.search = new URLSearchParams({ clientId: application.clientId, redirectUri, state });
  let page = await browser.open(start);
  for (let hop = 0; hop < HOPS; hop += 1) {
    if (page.location?.startsWith(redirectUri)) {
      assert.equal(page.status, 303, 'the redirect to the application must not repeat the POST');
      return Object.fromEntries(new URL(page.location).searchParams);
    }
    if (page.location) {
      page = await browser.open(new URL(page.location, page.url));
      continue;
    }
    assert.equal(page.status, 200, `${page.url.pathname} answered ${page.status}:\n${page.html}`);
    const [form, body] = nextRequest(page, user, decision);
    assert.equal(form.method, 'POST', 'credentials and consent must not travel in an address');
    page = await browser.open(form.action ? new URL(form.action, page.url) : page.url, body);
  }
  throw new Error(`no redirect to ${redirectUri} after ${HOPS} pages`);
}

module.exports = { Browser, forms, signIn, submission };
