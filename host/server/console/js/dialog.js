// The dialog that asks: one question at a time, nothing allowed by accident.
//
// It opens with the focus on its title, so that a stray Enter or Space does nothing, and takes no
// "allow" in its first second, nor in the first one of its window in front: another page could lay
// a window over it and take that away between two clicks. The keys a, s and d move the focus alone.

import { announce } from './announce.js';
import { fillDialog, isTyping, questionParts, wrapTab } from './dialog-parts.js';
import { byId, h, keyed, put } from './dom.js';
import { countdown } from './format.js';
import { questionNotices } from './notices.js';
import { problemBox } from './parts.js';
import {
  ARM_MS, EARLY, NEXT, alsoText, alsoWaiting, answerButtons, decisionOfKey, doneSaid, doneText,
  keysHint, nextButton, quietButton,
} from './question-buttons.js';
import {
  filesHeading,
  outcome,
  passed,
  resolutionText,
  sentence,
  sentenceText,
} from './question-content.js';
import { Questions } from './questions.js';
import { asSentence } from './text.js';

const WARN_MS = 30_000;

export class QuestionDialog {
  #dialog = byId('question');
  #questions;
  #live;
  #question = null;
  #state = 'closed';
  #asked = null;
  #armedAt = 0;
  #warned = false;
  #later = new Set();
  #before = null;
  /** The outcome of the shown question, if it was answered elsewhere. */
  #passed = null;
  #parts = {};
  #onClose;

  constructor(questions, live, onClose) {
    this.#questions = questions;
    this.#live = live;
    this.#onClose = onClose;
    live.addEventListener('state', () => this.#notice());
    live.addEventListener('health', () => this.#notice());
    questions.addEventListener('loaded', () => this.#loaded());
    questions.addEventListener('added', () => this.offer());
    questions.addEventListener('over', ({ detail }) => this.#over(detail));
    questions.addEventListener('change', () => {
      this.#count();
      this.#offerNext();
      if (this.#passed) this.offer();
    });
    this.#dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      this.#leave();
    });
    this.#dialog.addEventListener('keydown', (event) => this.#key(event));
    const disarm = () => {
      this.#armedAt = performance.now() + ARM_MS;
    };
    addEventListener('focus', disarm);
    document.addEventListener('visibilitychange', disarm);
    setInterval(() => this.#tick(), 500);
  }

  /** Whether a question is on the screen. */
  get isOpen() {
    return this.#dialog.open;
  }

  /** Shows the oldest question that was not put off, unless that would interrupt somebody. */
  offer() {
    const next = this.#waiting();
    // A question that was answered elsewhere makes room for the next one.
    if (next && this.#passed) {
      this.show(next.request_id, { before: passed(this.#question, this.#passed), offered: true });
    }
    if (this.isOpen || !next) return;
    if (document.querySelector('dialog[open]') || isTyping()) {
      announce(`A question waits: ${sentenceText(next)}.`, true);
      return;
    }
    this.show(next.request_id, { offered: true });
  }

  /** Shows the oldest question, also one that was put off. */
  review() {
    const [next] = this.#questions.list;
    if (next) this.show(next.request_id);
  }

  /** The oldest other question that was not put off. */
  #waiting() {
    const isFree = ({ request_id: id }) =>
      !this.#later.has(id) && id !== this.#question?.request_id;
    return this.#questions.list.find(isFree);
  }

  /**
   * Shows this question, open or over. `before` is what became of the one before. `offered` is true
   * if any open question would do: one that is over already then makes room for the next one.
   */
  async show(requestId, { before = null, offered = false } = {}) {
    this.#asked?.abort();
    this.#asked = new AbortController();
    this.#before = before;
    this.#passed = null;
    this.#state = 'loading';
    this.#question = { request_id: requestId };
    this.#frame('Loading the question', []);
    if (!this.isOpen) this.#dialog.showModal();
    this.#parts.title.focus();
    try {
      const details = await Questions.details(requestId, this.#asked.signal);
      this.#question = details;
      if (!details.resolution) this.#showOpen();
      else {
        this.#showOver(details.resolution);
        if (offered) {
          this.#passed = details.resolution;
          this.offer();
        }
      }
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.#state = 'over';
      this.#frame('The question cannot be shown', []);
      put(
        this.#parts.status,
        error.status === 404
          ? h('p', {}, 'There is no such question, or nobody knows any more what became of it.')
          : problemBox(error, () => this.show(requestId)),
      );
      this.#closing();
    }
  }

  #frame(title, content) {
    this.#parts = fillDialog(this.#dialog, title, content, this.#before);
    this.#count();
    this.#notice();
  }

  #showOpen() {
    const details = this.#question;
    this.#state = 'open';
    this.#warned = false;
    this.#armedAt = performance.now() + ARM_MS;
    this.#frame(['Allow ', sentence(details), '?'], questionParts(details));
    put(
      this.#parts.buttons,
      answerButtons(details.decisions, (name) => this.#answer(name)),
      quietButton('Not now', 'Esc', () => this.#leave()),
    );
    put(this.#parts.hint, keysHint());
    this.#count();
    this.#tick();
    this.#parts.title.focus();
    announce(
      `${this.#before?.said ?? ''}Question: allow ${sentenceText(details)}? ` +
        'Press a, s or d to go to an answer, and Enter to give it.',
    );
  }

  /** Whether an "allow" counts. A click can come before the event of its focus. */
  get #isArmed() {
    return document.hasFocus() && performance.now() >= this.#armedAt;
  }

  async #answer(decision) {
    // Without a connection the notice says why nothing happens.
    if (this.#state !== 'open' || !this.#isConnected) return;
    if (decision !== 'deny' && !this.#isArmed) {
      put(this.#parts.status, h('p', { class: 'early' }, EARLY));
      announce(EARLY);
      return;
    }
    const question = this.#question;
    const others = alsoWaiting(question, this.#questions.list);
    this.#state = 'sending';
    this.#dialog.setAttribute('aria-busy', 'true');
    try {
      await Questions.answer(question, decision);
      if (this.#question === question) {
        const said = doneSaid(question, decision, others);
        this.#finish('done', decision, doneText(question, decision, others), said);
      }
      this.#questions.refresh();
    } catch (error) {
      if (this.#question === question) this.#refused(error);
    } finally {
      this.#dialog.removeAttribute('aria-busy');
    }
  }

  #refused(error) {
    const resolution = error.body?.resolution;
    if ([409, 410].includes(error.status) && resolution) {
      this.#showOver(resolution, 'Your answer was not used. ');
    } else if ([404, 409, 410].includes(error.status)) {
      this.#finish('over', null, ['Your answer was not used. ', asSentence(error.message)]);
    } else {
      this.#state = 'open';
      put(this.#parts.status, problemBox(error));
    }
  }

  async #over({ requestId, decision }) {
    if (this.#question?.request_id !== requestId || this.#state !== 'open') return;
    const question = this.#question;
    this.#state = 'settling';
    let resolution = null;
    try {
      // The event has no name of who answered.
      ({ resolution } = await Questions.details(requestId));
    } catch {
      // Then the event's word has to do.
    }
    if (this.#question !== question || this.#state !== 'settling') return;
    if (resolution) this.#showOver(resolution);
    else if (decision) this.#showOver({ decision });
    else this.#finish('over', null, 'The question is no longer open.');
    // Nobody waits for this dialog any more, but the next question may be hidden behind it.
    this.#passed = resolution ?? { decision };
    this.offer();
  }

  #showOver(resolution, before = '') {
    const shownAlready = this.#parts.buttons.querySelector('[data-answer]');
    if (!shownAlready) {
      const details = this.#question;
      this.#frame([sentence(details)], questionParts(details));
    }
    this.#finish(
      'over',
      resolution.decision,
      [before, 'This question is over: ', resolutionText(resolution), '.'],
      `${before}This question is over: ${outcome(resolution.decision)}.`,
    );
  }

  #finish(state, decision, text, said = text) {
    this.#state = state;
    // The list may still have it for a moment, and would offer it again.
    this.#later.add(this.#question.request_id);
    put(this.#parts.left);
    put(this.#parts.also);
    put(this.#parts.hint);
    const files = this.#parts.content.querySelector('.files-heading');
    if (files) put(files, filesHeading(this.#question.files, decision ?? 'unknown'));
    if (this.#question.tool) put(this.#parts.title, sentence(this.#question));
    put(
      this.#parts.status,
      h('p', { class: `${state} ${decision ?? ''}`, tabindex: '-1' }, text),
    );
    this.#closing();
    announce(
      [said]
        .flat(Infinity)
        .filter((part) => typeof part === 'string')
        .join(''),
      true,
    );
  }

  #closing() {
    put(
      this.#parts.buttons,
      quietButton('Close', 'Esc', () => this.#close()),
    );
    this.#offerNext();
    // The button that had the focus is gone. The text says what happened, and Enter on it is idle.
    (this.#parts.status.querySelector('[tabindex]') ?? this.#parts.title).focus();
  }

  /** Keeps the way to the next question, which may come while the last one is still shown. */
  #offerNext() {
    if (!['done', 'over'].includes(this.#state)) return;
    const next = this.#questions.list.find((item) => item.request_id !== this.#question.request_id);
    const button = this.#parts.buttons.querySelector('.next');
    if (!next) button?.remove();
    else if (!button) this.#parts.buttons.prepend(nextButton(() => this.#next()));
  }

  #next() {
    const { request_id: current } = this.#question;
    const next = this.#questions.list.find((item) => item.request_id !== current);
    // The list may still have calls that an answer for the whole session lets run.
    if (next) this.show(next.request_id, { offered: true });
  }

  #leave() {
    if (this.#state === 'sending') return;
    if (this.#state === 'open') this.#later.add(this.#question.request_id);
    this.#close();
  }

  #close() {
    this.#asked?.abort();
    this.#state = 'closed';
    this.#question = null;
    this.#passed = null;
    this.#dialog.close();
    this.#onClose();
  }

  #key(event) {
    if (event.key === 'Tab') return wrapTab(this.#dialog, event);
    if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
    if (event.key === NEXT) this.#parts.buttons.querySelector('.next')?.click();
    if (this.#state !== 'open') return undefined;
    const decision = decisionOfKey(event.key);
    this.#parts.buttons.querySelector(`[data-answer="${decision}"]`)?.focus();
    return undefined;
  }

  #tick() {
    if (!['open', 'sending'].includes(this.#state)) return;
    const isArmed = this.#isArmed;
    for (const button of this.#parts.buttons.querySelectorAll('[data-answer]')) {
      const waits = !this.#isConnected || (button.dataset.answer !== 'deny' && !isArmed);
      if (waits) button.setAttribute('aria-disabled', 'true');
      else button.removeAttribute('aria-disabled');
    }
    if (isArmed) this.#parts.status.querySelector('.early')?.remove();
    const left = Questions.left(this.#question);
    this.#parts.left.classList.toggle('soon', this.#isConnected && left < WARN_MS);
    if (!this.#isConnected) {
      // The question may be over already, which this page has no way to learn.
      put(this.#parts.left, 'not connected');
      return;
    }
    const end = this.#live.stops ? 'until the server stops' : `expires in ${countdown(left)}`;
    put(this.#parts.left, left > 0 ? end : 'expiring');
    if (left < WARN_MS && !this.#warned) {
      this.#warned = true;
      announce(`The question expires in ${Math.ceil(left / 1000)} seconds.`);
    }
    // The server's word comes as an event; this is for a lost one.
    if (left === 0 && this.#state === 'open') this.#questions.refresh();
  }

  get #isConnected() {
    return this.#live.state === 'live';
  }

  /** Says inside the dialog what the page behind it says of the server. */
  #notice() {
    if (!this.#parts.notices) return;
    const notices = questionNotices(this.#live);
    const known = [...this.#parts.notices.children].map((notice) => notice.key);
    keyed(
      this.#parts.notices,
      notices,
      ({ text }) => text,
      ({ kind, text }) => h('p', { class: `notice ${kind}` }, text),
    );
    const fresh = notices.find(({ text }) => !known.includes(text));
    if (this.isOpen && fresh) announce(fresh.text, true);
    this.#tick();
  }

  /** Takes over what the server says; its clock may have gone on while no connection was there. */
  #loaded() {
    const open = new Map(this.#questions.list.map((item) => [item.request_id, item]));
    this.#later.forEach((id) => !open.has(id) && this.#later.delete(id));
    const fresh = open.get(this.#question?.request_id);
    if (fresh) this.#question.deadline = fresh.deadline;
  }

  #count() {
    if (!this.#parts.count) return;
    if (this.#state === 'open') {
      const others = alsoWaiting(this.#question, this.#questions.list);
      put(this.#parts.also, alsoText(this.#question, others));
    }
    const ids = this.#questions.list.map((item) => item.request_id);
    const at = ids.indexOf(this.#question?.request_id);
    put(
      this.#parts.count,
      ids.length > 1 && at >= 0 ? `Question ${at + 1} of ${ids.length}` : 'Question',
    );
  }
}
