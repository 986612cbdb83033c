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
  if (form.dataset.sent) event.preventDefault();
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
}

// Brings the first wrong field into view.
document.querySelector('[aria-invalid=true]')?.focus();

document.documentElement.classList.add('live');
