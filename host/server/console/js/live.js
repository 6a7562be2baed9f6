// The stream of events, which all tabs share: the leader has it and repeats it for the others. A
// new leader goes on behind the last event that it heard, so that none is lost in between.

import { get } from './api.js';
import { Stream } from './stream.js';
import { canShare, Tabs } from './tabs.js';

const LOOK_MS = 20_000;
// The event by which a server says that it ends soon.
const STOPS = 'server.draining';

/**
 * Dispatches `event` (detail: `{name, data}`), `resync` when events may be missing, `state`,
 * `health`, and `signed-out` when another tab has signed out.
 */
export class Live extends EventTarget {
  state = 'starting';
  /** The last report of the server on its own state, as `/readyz` has it. */
  health = null;
  /** Whether the tabs share one stream. */
  shared = canShare;
  #stream = new Stream((message) => this.#tell(message));
  #tabs = new Tabs(
    (leads) => this.#lead(leads),
    (message) => this.#hear(message),
  );
  #last = null;
  #look = 0;
  #wanted = false;

  constructor() {
    super();
    window.addEventListener('online', () => this.now());
    // A browser keeps a page that was left, for "back". The stream of such a page would tell the
    // server that somebody still looks.
    window.addEventListener('pagehide', () => this.#sleep());
    window.addEventListener('pageshow', ({ persisted }) => persisted && this.#wake());
  }

  /** Connects, and stays connected. */
  start() {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#last = null;
    this.#wake();
  }

  /** Ends the stream, as when nobody is signed in. */
  stop() {
    this.#wanted = false;
    this.#sleep();
    this.#become('stopped');
  }

  /** Whether the server takes no new calls, because it ends soon. */
  get stops() {
    return this.health?.status === 'draining';
  }

  /** Tries again at once. */
  now() {
    if (!this.#wanted || this.state === 'live') return;
    if (this.#tabs.leads) this.#stream.now();
    else this.#tabs.tell({ kind: 'now' });
  }

  /** Tells the other tabs that nobody is signed in any more. */
  signOut() {
    this.#tabs.tell({ kind: 'signed-out' });
  }

  #wake() {
    if (!this.#wanted) return;
    this.#become('connecting');
    this.#tabs.start();
    this.#look = setInterval(() => this.#lookAfter(), LOOK_MS);
    this.#lookAfter();
  }

  #sleep() {
    clearInterval(this.#look);
    this.#tabs.stop();
  }

  #lead(leads) {
    if (leads) this.#stream.start(this.#last);
    else this.#stream.stop();
  }

  /** The leader passes the messages of its stream on to all tabs. */
  #tell(message) {
    this.#tabs.tell(message);
    this.#hear(message);
    // Tells a server that is gone from one at which nobody is signed in any more.
    if (message.state === 'lost') this.#lookAfter();
  }

  #hear(message) {
    const { kind, id } = message;
    if (kind === 'state') this.#become(message.state);
    else if (kind === 'place') this.#pass(id);
    else if (kind === 'gap') {
      // The numbers may begin again, as those of another journal.
      this.#last = null;
      this.#say('resync');
    } else if (kind === 'event') this.#take(message);
    else if (kind === 'signed-out') this.#say('signed-out');
    else if (this.#tabs.leads && kind === 'hello') {
      this.#tabs.tell({ kind: 'state', state: this.#stream.state });
      if (this.#last) this.#tabs.tell({ kind: 'place', id: this.#last });
    } else if (this.#tabs.leads && kind === 'now') this.now();
  }

  #take({ id, name, text }) {
    // A new leader repeats what it has not heard, but others may have.
    if (!this.#pass(id)) return;
    try {
      this.#say('event', { name, data: JSON.parse(text) });
      if (name === STOPS) this.#learn({ ...this.health, status: 'draining' });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.#say('resync');
    }
  }

  /** Goes on to an event. Returns false if it came before. */
  #pass(id) {
    if (id === undefined) return true;
    if (this.#last !== null && BigInt(id) <= BigInt(this.#last)) return false;
    this.#last = id;
    return true;
  }

  // A connection can die without an end that the browser sees, for example in a tunnel.
  async #lookAfter() {
    this.#tabs.look();
    try {
      this.#learn(await get(['readyz'], { accepts: [503] }));
      await get(['confirmations'], {});
    } catch (error) {
      if (error.status === 0 && this.#tabs.leads) this.#stream.lost();
    }
  }

  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.#say('state', state);
    // The first events after `now` may have been missed, and others while nobody listened.
    if (state !== 'live') return;
    this.#say('resync');
    // It may be another server than before.
    if (this.health !== null) this.#lookAfter();
  }

  #learn(health) {
    this.health = health;
    this.#say('health', health);
  }

  #say(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
