// One stream of events: connects again after a loss, and goes on behind the last event that came.
//
// It is read by `fetch`, not by an `EventSource`, which hides the numbers that come without an
// event and the status of a refusal.

import { open, Problem } from './api.js';

const LONGEST_WAIT_MS = 15_000;
const SLOW_MS = 10_000;

export class Stream {
  #hear;
  #last = 'now';
  #failures = 0;
  #timer = 0;
  #slow = 0;
  #ended = null;
  state = 'stopped';

  /**
   * `hear` gets messages: `{kind: 'state', state}`, `{kind: 'event', id, name, text}`,
   * `{kind: 'place', id}` for the number up to which everything came, and `{kind: 'gap'}` when
   * events are lost.
   */
  constructor(hear) {
    this.#hear = hear;
  }

  /** Connects behind this event, or from now on, and stays connected. */
  start(last) {
    this.#last = last ?? 'now';
    this.#failures = 0;
    this.#connect();
  }

  stop() {
    this.#drop();
    this.state = 'stopped';
  }

  /** Connects again at once, unless the stream is open. */
  now() {
    if (this.state === 'stopped' || this.state === 'live') return;
    this.#drop();
    this.#connect();
  }

  /** The connection has died without an end. */
  lost() {
    if (this.state === 'live') this.#lose();
  }

  async #connect() {
    const ended = new AbortController();
    this.#ended = ended;
    if (this.#failures === 0) this.#become('connecting');
    this.#slow = setTimeout(() => this.#become('slow'), SLOW_MS);
    try {
      const body = await open(['events'], { after: this.#last }, ended.signal);
      clearTimeout(this.#slow);
      this.#failures = 0;
      this.#become('live');
      await this.#read(body, ended.signal);
    } catch (error) {
      if (!ended.signal.aborted && !(error instanceof Problem)) throw error;
    }
    if (!ended.signal.aborted) this.#lose();
  }

  async #read(body, signal) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    // A connection that breaks ends the stream, too.
    const next = () => reader.read().catch(() => ({ done: true }));
    let rest = '';
    for (let part = await next(); !part.done && !signal.aborted; part = await next()) {
      const blocks = (rest + part.value).split('\n\n');
      rest = blocks.pop();
      blocks.forEach((block) => this.#take(block));
    }
  }

  #take(block) {
    const fields = {};
    for (const line of block.split('\n')) {
      const [, name, value] = /^(id|event|data): ?(.*)$/.exec(line) ?? [];
      if (name) fields[name] = value;
    }
    if (fields.id) this.#last = fields.id;
    if (fields.event === 'journal.gap') this.#hear({ kind: 'gap' });
    else if (fields.event) {
      const { id, event: name, data: text } = fields;
      this.#hear({ kind: 'event', id, name, text });
    } else if (fields.id) this.#hear({ kind: 'place', id: fields.id });
  }

  #lose() {
    this.#drop();
    const wait = Math.min(LONGEST_WAIT_MS, 500 * 2 ** this.#failures);
    this.#failures += 1;
    this.#become('lost');
    this.#timer = setTimeout(() => this.#connect(), wait);
  }

  #drop() {
    clearTimeout(this.#timer);
    clearTimeout(this.#slow);
    this.#ended?.abort();
    this.#ended = null;
  }

  #become(state) {
    this.state = state;
    this.#hear({ kind: 'state', state });
  }
}
