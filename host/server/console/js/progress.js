// The latest progress of each running call, from the events alone.

import { duration } from './format.js';
import { short } from './text.js';

/** The events that change what the console shows of a call. */
export const CALL_EVENTS = new Set([
  'tool.called',
  'tool.completed',
  'tool.failed',
  'tool.input_invalid',
  'tool.confirmation_requested',
  'tool.confirmation_resolved',
]);
const ENDS = new Set(['tool.completed', 'tool.failed', 'tool.input_invalid']);
// More calls than this cannot be looked at; the oldest is forgotten.
const MOST = 1000;

/** Dispatches `change` (detail: the key) when there is news of a call. */
export class Progress extends EventTarget {
  #latest = new Map();

  constructor(live) {
    super();
    live.addEventListener('event', ({ detail }) => this.#hear(detail));
    live.addEventListener('resync', () => this.#latest.clear());
  }

  /** The news of a call, such as `3 of 10, compiling`, or an empty text. */
  of(call) {
    return this.#latest.get(key(call.session_id, call.call_id)) ?? '';
  }

  #hear({ name, data }) {
    const call = key(data.session_id, data.tool_use_id);
    if (ENDS.has(name)) this.#latest.delete(call);
    else if (name === 'tool.progress') this.#put(call, step(data));
    else if (name === 'tool.log') this.#put(call, short(data.message, 160));
  }

  #put(call, text) {
    this.#latest.delete(call);
    this.#latest.set(call, text);
    if (this.#latest.size > MOST) this.#latest.delete(this.#latest.keys().next().value);
    this.dispatchEvent(new CustomEvent('change', { detail: call }));
  }
}

function key(session, call) {
  return JSON.stringify([session ?? null, call ?? null]);
}

function step({ done, total, message }) {
  const counted = total ? `${done} of ${total}` : String(done);
  return message ? `${counted}, ${short(message, 160)}` : counted;
}

/** How long a call has been running or waiting, by the browser's clock. */
export function since(text) {
  return duration(Math.max(0, Date.now() - Date.parse(text)));
}
