'use strict';
// Makes the pages nicer to use. Everything works without it.

// Copies a field or a text, and says so for a moment.
for (const button of document.querySelectorAll('[data-copy]')) {
  const label = button.textContent;
  button.addEventListener('click', async () => {
    const field = document.getElementById(button.dataset.copy);
    if (field.select) field.select();
    else getSelection().selectAllChildren(field);
    try {
      await navigator.clipboard.writeText(field.value ?? field.textContent);
    } catch {
      document.execCommand('copy');
    }
    button.textContent = button.dataset.copied;
    setTimeout(() => { button.textContent = label; }, 2000);
  });
}

// Closes a menu with Escape, and when something else is pressed.
const menus = () => document.querySelectorAll('details.menu[open]');
document.addEventListener('click', ({ target }) => {
  for (const menu of menus()) if (!menu.contains(target)) menu.open = false;
});
document.addEventListener('keydown', ({ key }) => {
  if (key !== 'Escape') return;
  for (const menu of menus()) {
    menu.open = false;
    menu.querySelector('summary').focus();
  }
});

// A form is sent once, also when its button is pressed twice.
document.addEventListener('submit', (event) => {
  const { target: form } = event;
  if (form.method !== 'post') return;
  if (form.dataset.sent || event.defaultPrevented) return event.preventDefault();
  form.dataset.sent = 'yes';
});
addEventListener('pageshow', () => {
  for (const form of document.forms) delete form.dataset.sent;
});

// Adds new chat messages. They wait while the list is used, so that no button moves away.
const chat = document.querySelector('[data-messages]');
if (chat) {
  const state = document.getElementById('chat-state');
  const newest = () => chat.querySelector('[data-time]')?.dataset.time ?? chat.dataset.since;
  const add = (html) => {
    const part = document.createElement('template');
    part.innerHTML = html;
    for (const row of [...part.content.querySelectorAll('li')].reverse()) {
      if (!document.getElementById(row.id)) chat.prepend(row);
    }
    if (chat.children.length) document.getElementById('no-chat')?.remove();
    while (chat.children.length > 200) chat.lastElementChild.remove();
  };
  const poll = async () => {
    const paused = chat.matches(':hover, :focus-within');
    state.textContent = paused ? state.dataset.paused : state.dataset.live;
    let wait = 2000;
    if (!paused && !document.hidden) {
      try {
        const answer = await fetch(`${chat.dataset.messages}?since=${newest()}`, { redirect: 'manual' });
        // The sign-in has ended.
        if (answer.type === 'opaqueredirect') return location.reload();
        if (answer.ok) add(await answer.text());
        if (answer.status === 429) wait = 1000 * (Number(answer.headers.get('Retry-After')) || 30);
      } catch { /* The next try follows. */ }
    }
    setTimeout(poll, wait);
  };
  setTimeout(poll, 2000);
  actInPlace();
}

const UNDO = {
  hide: 'show', show: 'hide', restrict: 'lift', lift: 'restrict',
  'restrict-temporarily': 'lift-temporary', 'lift-temporary': 'restrict-temporarily',
};

// Sends the forms of the chat without leaving the page, and shows what they changed where it stands.
function actInPlace() {
  const done = document.getElementById('chat-done');
  let fading;
  const show = (html) => {
    const page = new DOMParser().parseFromString(html, 'text/html');
    const swap = (part) => { if (part?.id) document.getElementById(part.id)?.replaceWith(part); };
    for (const row of page.querySelectorAll('li[data-time]')) if (document.getElementById(row.id)) swap(row);
    swap(page.getElementById('notice-now'));
    done.textContent = page.getElementById('done')?.textContent ?? '';
    clearTimeout(fading);
    fading = setTimeout(() => { done.textContent = ''; }, 4000);
  };
  document.addEventListener('submit', async (event) => {
    const { target: form, submitter } = event;
    if (!form.closest('.chat, [aria-labelledby=notice]')) return;
    event.preventDefault();
    if (form.dataset.busy) return;
    form.dataset.busy = 'yes';
    const fields = new URLSearchParams(new FormData(form, submitter));
    fields.set('part', 'yes');
    const row = form.closest('li')?.id;
    const top = () => document.getElementById(row)?.getBoundingClientRect().top ?? 0;
    const answer = await fetch(form.action, { method: 'POST', body: fields, redirect: 'manual' }).catch(() => null);
    delete form.dataset.busy;
    // Refusals and the end of the sign-in have pages of their own.
    if (!answer?.ok) return resend(form, submitter);
    const html = await answer.text();
    const before = top();
    show(html);
    // Rows above may have another height now.
    scrollBy(0, top() - before);
    if (form.elements.message) form.reset();
    // The button that undoes the act stands where the pressed one was.
    const now = UNDO[submitter?.value] ?? submitter?.value;
    if (row) document.getElementById(row)?.querySelector(`button[value="${now}"]`)?.focus({ preventScroll: true });
  }, true);
}

// Sends a form as the browser does.
function resend(form, submitter) {
  if (submitter?.name) {
    const field = document.createElement('input');
    Object.assign(field, { type: 'hidden', name: submitter.name, value: submitter.value });
    form.append(field);
  }
  form.submit();
}

// Suggests people while a name is typed. Choosing one fills the id in.
for (const field of document.querySelectorAll('[data-suggest]')) {
  let waiting;
  field.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const answer = await fetch(`${field.dataset.suggest}?q=${encodeURIComponent(field.value)}`, { redirect: 'manual' }).catch(() => null);
      if (answer?.ok) field.list.innerHTML = await answer.text();
    }, 300);
  });
}

// Shows times in the reader's zone. A press on a distance shows the time, also where nothing hovers.
const zoned = (style) => new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: style });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const localize = (time) => {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.valueOf())) return;
  const text = `${zoned(time.dataset.exact === undefined ? 'short' : 'medium').format(at)} (${zone})`;
  if (time.title) time.title = text;
  else time.textContent = text;
};
for (const time of document.querySelectorAll('time')) localize(time);
document.addEventListener('click', ({ target }) => {
  const time = target.closest?.('time[title]');
  if (time && !time.closest('a, button, summary')) [time.textContent, time.title] = [time.title, time.textContent];
});

// Brings the chosen tab, and the first wrong field, into view.
for (const tab of document.querySelectorAll(':is(.sections, .side) [aria-current]')) {
  const row = tab.closest('nav');
  row.scrollLeft += tab.getBoundingClientRect().left - row.getBoundingClientRect().left - (row.clientWidth - tab.clientWidth) / 2;
}
document.querySelector('[aria-invalid=true]')?.focus();

document.documentElement.classList.add('live');
