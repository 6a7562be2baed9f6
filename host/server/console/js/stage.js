// Shows one view at a time: its title, its content, what went wrong, and fresh content when events
// make it stale.
//
// A view has `title(route)`, `load(route, app, signal)`, `build(body, route, app)` which returns
// `show(data)`, and optionally `stale(event, route)`, `every` (ms) and `leave()`.

import { announce } from './announce.js';
import { byId, h, put } from './dom.js';
import { paced } from './pace.js';
import { problemBox } from './parts.js';
import { visible } from './text.js';

const REST_MS = 400;

export class Stage {
  #live;
  #current = null;
  #first = true;

  constructor(live) {
    this.#live = live;
    live.addEventListener('resync', () => this.#current?.refresh());
    live.addEventListener('event', ({ detail }) => {
      const { view, route, refresh } = this.#current ?? {};
      if (view?.stale?.(detail, route)) refresh();
    });
  }

  /** Opens a view. Of the view that is open only the content changes. */
  open(view, route, app) {
    const held = this.#current?.view === view ? document.activeElement?.dataset?.focus : null;
    this.#close();
    const title = view.title(route);
    const trouble = h('div');
    const body = h('div', { class: 'body', 'aria-busy': 'true' });
    this.#head(title, [trouble, body]);
    const show = view.build(body, route, app);
    // A search with other words is the same page: the focus stays where it was.
    if (held) body.querySelector(`[data-focus="${held}"]`)?.focus();
    const ended = new AbortController();
    const load = async () => {
      try {
        const data = await view.load(route, app, ended.signal);
        if (ended.signal.aborted) return;
        show(data);
        put(trouble);
      } catch (error) {
        if (ended.signal.aborted) return;
        if (typeof error.status !== 'number') throw error;
        // While the connection is lost, its banner says so.
        if (error.status !== 0 || !body.hasChildNodes()) put(trouble, problemBox(error, refresh));
      } finally {
        body.removeAttribute('aria-busy');
      }
    };
    const refresh = paced(load, REST_MS);
    const timer = view.every ? setInterval(() => !document.hidden && refresh(), view.every) : 0;
    this.#current = {
      view,
      route,
      refresh,
      close: () => {
        clearInterval(timer);
        ended.abort();
        refresh.stop();
        show.leave?.();
      },
    };
    refresh();
  }

  /** Loads the content of the open view again. */
  refresh() {
    this.#current?.refresh?.();
  }

  /** Shows content that does not change. */
  still(title, content) {
    this.#close();
    this.#head(title, [h('div', { class: 'body' }, content)]);
  }

  #close() {
    this.#current?.close();
    this.#current = null;
  }

  #head(title, content) {
    const heading = h('h1', { tabindex: '-1' }, title);
    put(byId('view'), heading, content);
    const waiting = /^\(\d+\) /.exec(document.title)?.[0] ?? '';
    document.title = `${waiting}${visible(title)} · Palisade`;
    // The first view is read from the top of the page.
    if (!this.#first && !document.querySelector('dialog[open]')) heading.focus();
    if (!this.#first) announce(title);
    this.#first = false;
    window.scrollTo(0, 0);
  }
}
