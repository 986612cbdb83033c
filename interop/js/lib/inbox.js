'use strict';
const { withDeadline } = require('./tap.js');

const MESSAGE_DEADLINE_MS = 10_000;

/** Socket messages in the order of their arrival, with a wait for one of them. */
class Inbox {
  constructor() {
    this.messages = [];
    this.waiting = [];
  }

  push(name, payload) {
    const message = { name, payload };
    this.messages.push(message);
    this.waiting = this.waiting.filter(({ matches, resolve }) => {
      if (!matches(message)) return true;
      resolve(message.payload);
      return false;
    });
  }

  /** The payload of the first message that `matches`. Waits for it if necessary. */
  take(what, matches) {
    const here = this.messages.find(matches);
    if (here) return Promise.resolve(here.payload);
    const arrival = new Promise((resolve) => this.waiting.push({ matches, resolve }));
    return withDeadline(arrival, MESSAGE_DEADLINE_MS, what);
  }

  system(type, eventType) {
    return this.take(`SYSTEM ${type} ${eventType ?? ''}`, ({ name, payload }) => {
      return name === 'SYSTEM' && payload.type === type && (!eventType || payload.data.eventType === eventType);
    });
  }

  chat(content) {
    return this.take(`CHAT ${content}`, ({ name, payload }) => name === 'CHAT' && payload.content === content);
  }

  event(wanted) {
    return this.take(wanted, ({ name }) => name === wanted);
  }

  named(wanted) {
    return this.messages.filter(({ name }) => name === wanted).map(({ payload }) => payload);
  }
}

module.exports = { Inbox };
