// The frame around every view: the navigation, the state of the connection, and the banners.

import { byId, h, keyed, put } from './dom.js';
import { count } from './format.js';
import { pageNotices } from './notices.js';

const CONNECTION = {
  starting: 'Starting',
  connecting: 'Connecting',
  slow: 'Still connecting',
  live: 'Live',
  lost: 'Not connected',
  stopped: 'Signed out',
};
const UNWRITTEN = 'The journal cannot be written, so calls that change something are refused.';

export class Frame {
  #app;
  /** Why the sign-out did not work. */
  #stays = null;

  constructor(app) {
    this.#app = app;
    app.live.addEventListener('state', () => this.#show());
    app.live.addEventListener('health', () => this.#show());
    app.questions.addEventListener('change', () => this.#show());
    byId('sign-out').addEventListener('click', () => this.#signOut());
  }

  /** Shows what needs somebody signed in. */
  reveal() {
    byId('nav').hidden = false;
    byId('sign-out').hidden = false;
  }

  /** Hides everything that needs somebody signed in. */
  hide() {
    byId('nav').hidden = true;
    byId('sign-out').hidden = true;
    this.#stays = null;
    put(byId('banners'));
    document.title = 'Palisade';
  }

  /** Marks the view that is shown in the navigation. */
  mark(name) {
    const section = { call: 'history', session: 'sessions', question: 'now' }[name] ?? name;
    for (const link of byId('nav').querySelectorAll('a')) {
      if (link.getAttribute('href') === `#/${section}`) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }

  async #signOut() {
    try {
      this.#stays = null;
      await this.#app.signOut();
    } catch (error) {
      this.#stays = error.message;
    }
    this.#show();
  }

  #show() {
    const { live, questions } = this.#app;
    const line = byId('connection');
    line.dataset.state = live.state;
    if (line.textContent !== CONNECTION[live.state]) line.textContent = CONNECTION[live.state];
    if (live.state === 'stopped') return;
    const waiting = questions.list.length;
    document.title = document.title.replace(/^\(\d+\) /, '');
    if (waiting > 0) document.title = `(${waiting}) ${document.title}`;
    keyed(
      byId('banners'),
      this.#banners(waiting),
      (banner) => banner.kind,
      (banner) =>
        h(
          'div',
          { class: `banner ${banner.kind}`, role: 'region', 'aria-label': banner.label },
          h('p', {}, banner.text),
          this.#action(banner.kind),
        ),
    );
  }

  #banners(waiting) {
    const { live } = this.#app;
    const banners = pageNotices(live);
    if (this.#stays !== null) {
      banners.push({
        kind: 'stays',
        label: 'Sign-out',
        text: `You are still signed in: ${this.#stays}`,
      });
    }
    const journal = live.health?.journal;
    if (journal?.state === 'failing') {
      banners.push({
        kind: 'journal',
        label: 'Journal',
        text: `${UNWRITTEN} ${journal.detail ?? ''}`,
      });
    }
    if (waiting > 0) {
      banners.push({
        kind: 'waiting',
        label: 'Questions',
        text: `${count(waiting, 'question waits', 'questions wait')} for an answer.`,
      });
    }
    return banners;
  }

  #action(kind) {
    if (kind === 'waiting') {
      return h(
        'button',
        { type: 'button', 'data-focus': 'review', onclick: () => this.#app.review() },
        'Review',
      );
    }
    if (kind === 'lost') {
      return h(
        'button',
        { type: 'button', 'data-focus': 'connect', onclick: () => this.#app.live.now() },
        'Try now',
      );
    }
    return null;
  }
}
