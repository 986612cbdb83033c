'use strict';
// The console works without this script. The script sends the same forms without a new page, and keeps what changes up
// to date.
(() => {
  const ROWS_MAX = 300;
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  root.classList.add('js');

  // Replaces the content of an element. What was typed, chosen, opened, scrolled and focused stays.
  function replace(element, html) {
    const active = element.contains(document.activeElement) ? document.activeElement : null;
    const caret = active?.matches('input') ? [active.selectionStart, active.selectionEnd] : null;
    const within = (selector) => [...element.querySelectorAll(selector)];
    const filled = within('input[id], select[id]').map(({ id, value }) => [id, value]);
    const opened = within('details[open][id]').map(({ id }) => id);
    const scrolled = within('[id]').filter(({ scrollTop }) => scrollTop).map(({ id, scrollTop }) => [id, scrollTop]);
    element.innerHTML = html;
    for (const [id, value] of filled) {
      const control = byId(id);
      if (control && (control.localName === 'input' || [...control.options].some((one) => one.value === value))) control.value = value;
    }
    for (const id of opened) byId(id)?.setAttribute('open', '');
    for (const [id, top] of scrolled) byId(id)?.scrollTo(0, top);
    if (!active) return;
    const again = active.id && byId(active.id);
    (again || headingOf(element))?.focus({ preventScroll: true });
    if (again && caret?.[0] != null) again.setSelectionRange(...caret);
  }

  // Where the focus goes when its control is gone.
  function headingOf(element) {
    const heading = element.closest('section')?.querySelector('h2');
    heading?.setAttribute('tabindex', '-1');
    return heading;
  }

  // New options of a select. What was chosen stays chosen, and an option that stands for no choice stays first.
  function renew(select, html) {
    const { value } = select;
    const none = [...select.options].filter((option) => option.value === '');
    select.innerHTML = html;
    select.prepend(...none);
    if ([...select.options].some((option) => option.value === value)) select.value = value;
  }

  // The clock goes on between two messages.
  function tick() {
    for (const time of document.querySelectorAll('time[data-now]')) {
      time.seenAt ??= performance.now();
      const now = Date.parse(time.dataset.now) + (performance.now() - time.seenAt) * Number(time.dataset.rate);
      time.textContent = new Date(now).toISOString().slice(0, 19).replace('T', ' ');
    }
  }
  setInterval(tick, 250);

  let live;
  let mark = document.body.dataset.mark;

  function view() {
    const query = new URLSearchParams();
    for (const form of document.querySelectorAll('form[data-view]')) {
      for (const { name, value, type } of form.elements) {
        if (name && type !== 'hidden' && value) query.set(name, value);
      }
    }
    return query;
  }

  function connect() {
    live?.close();
    const query = view();
    // With a wrong filter only the rest of the page is kept up to date.
    if (!byId('where-wrong').hidden) ['where', 'kind'].forEach((name) => query.delete(name));
    query.set('after', mark);
    query.set('lang', root.lang);
    live = new EventSource(`/sandbox/console/live?${query}`);
    live.onopen = () => { byId('lost').textContent = ''; };
    live.onerror = () => {
      byId('lost').textContent = document.body.dataset.lost;
      // A refused stream is not opened again by the browser.
      if (live.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
    };
    live.addEventListener('region', ({ data }) => {
      const { id, html } = JSON.parse(data);
      if (id.startsWith('options-')) {
        for (const select of document.querySelectorAll(`select[data-options="${id}"]`)) renew(select, html);
      } else if (byId(id)) {
        replace(byId(id), html);
        tick();
      }
    });
    live.addEventListener('rows', ({ data }) => {
      const rows = JSON.parse(data);
      mark = rows.mark;
      if (byId('pause').checked || !byId('where-wrong').hidden) return;
      const list = byId('records');
      list.insertAdjacentHTML('afterbegin', rows.html);
      while (list.children.length > ROWS_MAX && !list.lastElementChild.contains(document.activeElement)) {
        list.lastElementChild.remove();
      }
    });
  }

  // Shows the page of the chosen channel and filter without a jump.
  async function show() {
    const query = view();
    history.replaceState(null, '', `/?${query}`);
    const page = await (await fetch(`/?${query}`)).text();
    const fresh = new DOMParser().parseFromString(page, 'text/html');
    for (const id of ['chat-view', 'records', 'where-wrong']) {
      const [old, renewed] = [byId(id), fresh.getElementById(id)];
      old.replaceChildren(...renewed.childNodes);
      old.hidden = renewed.hidden;
    }
    mark = fresh.body.dataset.mark;
    connect();
  }

  async function act(form, submitter) {
    if (form.dataset.confirm && !confirm(form.dataset.confirm)) return;
    const body = new URLSearchParams(new FormData(form, submitter));
    const file = form.querySelector('[data-body]')?.files[0];
    submitter?.setAttribute('aria-busy', 'true');
    try {
      if (file) body.set('_body', await file.text());
      const headers = { 'Console-Fragment': '1' };
      const answer = await fetch(form.action, { method: 'POST', headers, body });
      const text = await answer.text();
      const isPage = answer.headers.get('content-type')?.startsWith('text/html');
      if (isPage) replace(byId('result'), text);
      else location.reload();
      if (isPage && answer.ok && form.closest('.adder')) form.reset();
      // A world that went back has another record.
      if (isPage && answer.ok && 'renew' in form.dataset) await show();
    } catch {
      byId('lost').textContent = document.body.dataset.lost;
    } finally {
      submitter?.removeAttribute('aria-busy');
    }
  }

  document.addEventListener('submit', (event) => {
    const { target, submitter } = event;
    if (submitter?.hasAttribute('formaction')) return;
    if (target.matches('[data-act]')) {
      event.preventDefault();
      // A second press while the first one runs changes nothing.
      if (!submitter?.hasAttribute('aria-busy')) act(target, submitter);
    } else if (target.matches('[data-view]')) {
      event.preventDefault();
      show();
    }
  });

  document.addEventListener('change', ({ target }) => {
    if (target.id === 'pause') {
      if (!target.checked) show();
    } else if (target.matches('[data-view] select')) show();
  });

  document.addEventListener('click', async ({ target }) => {
    const copy = target.closest('[data-copy]');
    if (copy) {
      try {
        await navigator.clipboard.writeText(copy.dataset.copy);
      } catch {
        const area = document.createElement('textarea');
        area.value = copy.dataset.copy;
        copy.after(area);
        area.select();
        document.execCommand('copy');
        area.remove();
        copy.focus();
      }
      const before = copy.innerHTML;
      copy.textContent = document.body.dataset.copied;
      setTimeout(() => { copy.innerHTML = before; }, 1200);
    } else if (target.closest('[data-close]')) {
      byId('result').replaceChildren();
    }
  });

  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') byId('result')?.replaceChildren();
  });

  // Other pages have the buttons alone.
  if (mark) connect();
})();
