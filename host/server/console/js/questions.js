// The open questions, as the server has them.

import { get, post } from './api.js';
import { paced } from './pace.js';

const REST_MS = 100;
// Someone answered, but its event did not arrive: found by asking now and then.
const LOOK_MS = 20_000;

/**
 * Dispatches `loaded` when the server has told the list, `change` when it is another one, `added`
 * (detail: a question) for each new one, and `over` (detail: `{requestId, decision}`) when one is
 * settled.
 */
export class Questions extends EventTarget {
  #open = new Map();
  #refresh = paced(() => this.#load(), REST_MS);
  loaded = false;

  constructor(live) {
    super();
    live.addEventListener('resync', () => this.#refresh());
    live.addEventListener('event', ({ detail }) => this.#hear(detail));
    setInterval(() => live.state === 'live' && this.#refresh(), LOOK_MS);
  }

  /** The open questions, the oldest first. */
  get list() {
    return [...this.#open.values()];
  }

  /** Loads the list again. */
  refresh() {
    this.#refresh();
  }

  /** Forgets everything, as when nobody is signed in. */
  clear() {
    this.#open.clear();
    this.#say('change');
  }

  /** The rest of a question's time, in milliseconds, by the server's clock. */
  static left(question) {
    return Math.max(0, question.deadline - performance.now());
  }

  /** One question with its input and files, also if it is over. */
  static async details(requestId, signal) {
    return withDeadline(await get(['confirmations', requestId], { signal }));
  }

  /** Sends an answer. Throws a `Problem` with status 409 or 410 if it came too late. */
  static answer(question, decision) {
    return post(
      [
        'sessions',
        question.session_id ?? '-',
        'turns',
        question.turn_id ?? '-',
        'confirmations',
        question.request_id,
      ],
      { decision },
    );
  }

  #hear({ name, data }) {
    if (name === 'tool.confirmation_requested') this.#refresh();
    if (name !== 'tool.confirmation_resolved') return;
    this.#say('over', { requestId: data.request_id, decision: data.decision });
    this.#refresh();
  }

  async #load() {
    let answer;
    try {
      answer = await get(['confirmations']);
    } catch {
      // The connection's own state says so; the next look or the next event tries again.
      return;
    }
    const fresh = new Map(answer.items.map((item) => [item.request_id, withDeadline(item)]));
    const added = [...fresh.values()].filter((item) => !this.#open.has(item.request_id));
    const gone = [...this.#open.keys()].filter((id) => !fresh.has(id));
    this.#open = fresh;
    this.loaded = true;
    this.#say('loaded');
    if (added.length > 0 || gone.length > 0) this.#say('change');
    gone.forEach((requestId) => this.#say('over', { requestId, decision: null }));
    added.forEach((question) => this.#say('added', question));
  }

  #say(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

function withDeadline(question) {
  return { ...question, deadline: performance.now() + question.remaining_ms };
}
