// The tabs of this console in this browser: one of them leads, and all hear each other.
//
// A browser has six connections to an address, so that not every tab can have a stream of events.
// The lock of the leader is given to the next tab when the leader is closed or crashes. A leader
// that is asleep, as some phones put hidden tabs to sleep, is replaced when it does not answer.

import { address } from './api.js';

const NAME = `palisade ${address([]).pathname}`;
// The leader speaks at least every 15 s, which is when the server gives a sign of life.
const SILENT_MS = 45_000;
const ANSWER_MS = 3_000;

/** Whether this browser lets tabs share something. It does at loopback addresses and over TLS. */
export const canShare = 'locks' in navigator && 'BroadcastChannel' in window;

export class Tabs {
  #channel = null;
  #lead;
  #hear;
  #waiting = null;
  #resign = null;
  #heard = 0;
  #wanted = false;
  #doubts = 0;

  /**
   * Calls `lead(true)` when this tab becomes the leader and `lead(false)` when it is not any more,
   * and `hear(message)` for what other tabs say.
   */
  constructor(lead, hear) {
    this.#lead = lead;
    this.#hear = hear;
    // A person who looks at this tab would not see that the leader sleeps.
    document.addEventListener('visibilitychange', () => !document.hidden && this.#doubt());
  }

  /** Whether this tab is the leader. */
  get leads() {
    return this.#resign !== null;
  }

  start() {
    if (this.#wanted) return;
    this.#wanted = true;
    if (!canShare) {
      this.#alone();
      return;
    }
    this.#channel = new BroadcastChannel(NAME);
    this.#channel.onmessage = ({ data }) => {
      this.#heard = performance.now();
      this.#hear(data);
    };
    this.#queue();
    this.#doubt();
  }

  stop() {
    this.#wanted = false;
    this.#channel?.close();
    this.#channel = null;
    this.#waiting?.abort();
    this.#leave();
  }

  /** Says something to all other tabs. */
  tell(message) {
    this.#channel?.postMessage(message);
  }

  /** To be called now and then: replaces a leader that has been silent for too long. */
  look() {
    if (performance.now() - this.#heard > SILENT_MS) this.#doubt();
  }

  async #queue(steal = false) {
    const waiting = new AbortController();
    this.#waiting?.abort();
    this.#waiting = waiting;
    // A stolen lock is given at once.
    const how = steal ? { steal } : { signal: waiting.signal };
    try {
      await navigator.locks.request(NAME, how, () => this.#hold());
    } catch (error) {
      // Nobody waits any more, or another tab has taken the lock. Else there are no locks here.
      if (error.name !== 'AbortError') {
        if (this.#wanted) this.#alone();
        return;
      }
    }
    if (waiting.signal.aborted) return;
    this.#leave();
    if (this.#wanted) this.#queue();
  }

  /** Leads without any others. */
  #alone() {
    this.#channel?.close();
    this.#channel = null;
    this.#resign = () => {};
    this.#lead(true);
  }

  /** Leads until the returned promise is fulfilled. */
  #hold() {
    return new Promise((resolve) => {
      this.#resign = resolve;
      this.#lead(true);
    });
  }

  #leave() {
    if (!this.#resign) return;
    this.#resign();
    this.#resign = null;
    this.#lead(false);
  }

  /** Asks the leader whether it is there, and takes its place if it does not answer. */
  #doubt() {
    if (!this.#channel || this.leads) return;
    const asked = performance.now();
    this.tell({ kind: 'hello' });
    clearTimeout(this.#doubts);
    this.#doubts = setTimeout(() => {
      if (this.#channel && !this.leads && this.#heard < asked) this.#queue(true);
    }, ANSWER_MS);
  }
}
