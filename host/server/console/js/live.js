// The stream of events, kept open: connects again after a loss, goes on behind the last event that
// came, and tells when everything has to be loaded again.

import { address, get } from './api.js';

// A stream gives only the names that somebody listens to.
const NAMES = [
  'tool.called',
  'tool.completed',
  'tool.failed',
  'tool.input_invalid',
  'tool.confirmation_requested',
  'tool.confirmation_resolved',
  'tool.output_delta',
  'tool.progress',
  'tool.log',
  'plugin.loaded',
  'plugin.changed',
  'plugin.removed',
  'plugin.rejected',
  'session.opened',
  'session.closed',
  'journal.lost',
];
const LONGEST_WAIT_MS = 15_000;
const LOOK_MS = 20_000;
const SLOW_MS = 10_000;

/**
 * Dispatches `event` (detail: `{name, data}`), `resync` when events may be missing, `state` and
 * `health`.
 */
export class Live extends EventTarget {
  state = 'starting';
  retryAt = 0;
  #source = null;
  #last = 'now';
  #failures = 0;
  #timer = 0;
  #slow = 0;
  #look = 0;
  #wanted = false;

  /** Connects, and stays connected. */
  start() {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#look = setInterval(() => this.#lookAfter(), LOOK_MS);
    window.addEventListener('online', () => this.now());
    this.#connect();
    this.#lookAfter();
  }

  /** Ends the stream, as when nobody is signed in. */
  stop() {
    this.#wanted = false;
    clearInterval(this.#look);
    this.#drop();
    this.#become('stopped');
  }

  /** Tries again at once. */
  now() {
    if (!this.#wanted || this.state === 'live') return;
    this.#drop();
    this.#connect();
  }

  #connect() {
    const source = new EventSource(address(['events'], { after: this.#last }));
    this.#source = source;
    if (this.#failures === 0) this.#become('connecting');
    this.#slow = setTimeout(() => this.#become('slow'), SLOW_MS);
    source.onopen = () => {
      clearTimeout(this.#slow);
      this.#failures = 0;
      this.#become('live');
      // The first events after `now` may have been missed, and others while nobody listened.
      this.#say('resync');
    };
    source.onerror = () => this.#lost();
    source.addEventListener('journal.gap', () => this.#say('resync'));
    for (const name of NAMES) source.addEventListener(name, (event) => this.#take(name, event));
  }

  #take(name, event) {
    if (event.lastEventId) this.#last = event.lastEventId;
    try {
      this.#say('event', { name, data: JSON.parse(event.data) });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.#say('resync');
    }
  }

  #lost() {
    this.#drop();
    if (!this.#wanted) return;
    const wait = Math.min(LONGEST_WAIT_MS, 500 * 2 ** this.#failures);
    this.#failures += 1;
    this.retryAt = performance.now() + wait;
    this.#become('lost');
    this.#timer = setTimeout(() => this.#connect(), wait);
    // Tells a server that is gone from one at which nobody is signed in any more.
    this.#lookAfter();
  }

  #drop() {
    clearTimeout(this.#timer);
    clearTimeout(this.#slow);
    this.#source?.close();
    this.#source = null;
  }

  // A connection can die without an end that the browser sees, for example in a tunnel.
  async #lookAfter() {
    try {
      this.#say('health', await get(['readyz'], { accepts: [503] }));
      await get(['confirmations'], {});
    } catch (error) {
      if (this.state === 'live' && error.status === 0) this.#lost();
    }
  }

  #become(state) {
    if (this.state === state && state !== 'lost') return;
    this.state = state;
    this.#say('state', state);
  }

  #say(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
