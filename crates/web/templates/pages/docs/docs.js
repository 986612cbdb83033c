'use strict';
// Makes the documentation nicer to use. Everything works without it.

// A chosen language of programs counts for all examples, and is remembered.
const KEY = 'docs-language';
const choose = (language) => {
  for (const input of document.querySelectorAll(`[data-language="${CSS.escape(language)}"]`)) input.checked = true;
};
const recall = () => {
  try {
    const language = localStorage.getItem(KEY);
    if (language) choose(language);
  } catch { /* Storage may be turned off. */ }
};
document.addEventListener('change', ({ target }) => {
  const { language } = target.dataset ?? {};
  if (!language) return;
  const before = target.getBoundingClientRect().top;
  choose(language);
  // Examples above may have changed their height.
  scrollBy(0, target.getBoundingClientRect().top - before);
  try {
    localStorage.setItem(KEY, language);
  } catch { /* Storage may be turned off. */ }
});
recall();

// A long navigation begins at the page that is open.
const navigation = document.querySelector('.docs-nav');
const current = navigation.querySelector('[aria-current]');
if (current) navigation.scrollTop = current.offsetTop - navigation.clientHeight / 3;

// Shows results of the search while it is typed.
const field = document.getElementById('docs-q');
const page = document.getElementById('docs-page');
const whole = [...page.childNodes];
let timer = 0;
let last = field.value;
const show = async () => {
  const asked = field.value.trim();
  if (asked === last.trim()) return;
  last = asked;
  if (!asked) {
    page.replaceChildren(...whole);
    return;
  }
  try {
    const answer = await fetch(`/docs?q=${encodeURIComponent(asked)}`);
    const found = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('docs-page');
    if (answer.ok && found && field.value.trim() === asked) page.replaceChildren(...found.childNodes);
  } catch { /* The button still searches. */ }
};
field.addEventListener('input', () => {
  clearTimeout(timer);
  timer = setTimeout(show, 150);
});
// As in other documentations, a slash goes to the search.
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest('input, textarea, select')) return;
  event.preventDefault();
  field.focus();
});

// Sends a request of a sandbox, and shows its answer below the form.
document.addEventListener('submit', async (event) => {
  const form = event.target.closest('.try form');
  if (!form) return;
  event.preventDefault();
  const place = form.querySelector('.try-answer');
  place.textContent = form.dataset.sending;
  try {
    const answer = await fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form)) });
    const shown = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('answer');
    place.replaceChildren(...(shown ? shown.childNodes : [`${answer.status}`]));
  } catch (problem) {
    place.textContent = String(problem);
  }
  delete form.dataset.sent;
});
