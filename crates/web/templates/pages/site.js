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

// Brings the first wrong field into view.
document.querySelector('[aria-invalid=true]')?.focus();

document.documentElement.classList.add('live');
