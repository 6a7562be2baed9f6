// The dialog that asks: one question at a time, nothing allowed by accident.
//
// It opens with the focus on its title, so that a stray Enter or Space does nothing, and it takes
// no "allow" in its first second. The keys a, s and d only move the focus to a button.

import { announce } from './announce.js';
import { byId, h, put } from './dom.js';
import { countdown } from './format.js';
import { problemBox } from './parts.js';
import {
  callFacts,
  filesPart,
  inputPart,
  outcome,
  passed,
  questionFacts,
  resolutionText,
  sentence,
  sentenceText,
} from './question-content.js';
import { Questions } from './questions.js';

const ARM_MS = 1000;
const WARN_MS = 30_000;
const BUTTONS = {
  deny: { label: 'Deny', key: 'd', hint: 'The call does not run.' },
  allow: { label: 'Allow once', key: 'a', hint: 'This call may run, and no other.' },
  always: {
    label: 'Allow for this session',
    key: 's',
    hint: 'This tool of this plugin may run in this session without a further question.',
  },
};
const DONE = { allow: 'Allowed.', always: 'Allowed for this session.', deny: 'Denied.' };

export class QuestionDialog {
  #dialog = byId('question');
  #questions;
  #question = null;
  #state = 'closed';
  #asked = null;
  #armedAt = 0;
  #warned = false;
  #later = new Set();
  #before = null;
  /** What became of the shown question, if it was answered elsewhere. */
  #passed = null;
  #parts = {};
  #onClose;

  constructor(questions, onClose) {
    this.#questions = questions;
    this.#onClose = onClose;
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
    if (next && this.#passed) this.show(next.request_id, passed(this.#question, this.#passed));
    if (this.isOpen || !next) return;
    if (document.querySelector('dialog[open]') || isTyping()) {
      announce(`A question waits: ${sentenceText(next)}.`, true);
      return;
    }
    this.show(next.request_id);
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

  /** Shows this question, open or over. `before` is what became of the one before. */
  async show(requestId, before = null) {
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
        // Not asked for, but offered, and answered elsewhere meanwhile.
        if (before) this.#passed = details.resolution;
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
    const parts = {
      title: h('h2', { id: 'question-title', tabindex: '-1' }, title),
      count: h('p', { class: 'count' }),
      left: h('p', { class: 'left' }),
      content: h('div', { class: 'content' }, content),
      status: h('div', { class: 'status' }),
      says: h('div', { class: 'unseen', role: 'alert', 'data-says': '' }),
      buttons: h('div', { class: 'buttons' }),
    };
    this.#parts = parts;
    put(
      this.#dialog,
      h(
        'header',
        {},
        this.#before && h('p', { class: 'before' }, this.#before.shown),
        h('div', { class: 'line' }, parts.count, parts.left),
        parts.title,
      ),
      parts.content,
      h('footer', {}, parts.status, parts.says, parts.buttons),
    );
    this.#count();
  }

  #showOpen() {
    const details = this.#question;
    this.#state = 'open';
    this.#warned = false;
    this.#armedAt = performance.now() + ARM_MS;
    this.#frame(['Allow ', sentence(details), '?'], parts(details));
    const offered = Object.keys(BUTTONS).filter((name) => details.decisions.includes(name));
    put(
      this.#parts.buttons,
      offered.map((name) => this.#button(name)),
      this.#laterButton(),
    );
    this.#tick();
    this.#parts.title.focus();
    announce(
      `${this.#before?.said ?? ''}Question: allow ${sentenceText(details)}? ` +
        'Press a, s or d to go to an answer.',
    );
  }

  #button(name) {
    const { label, key, hint } = BUTTONS[name];
    return h(
      'button',
      {
        type: 'button',
        class: `answer ${name}`,
        'data-answer': name,
        title: hint,
        'aria-keyshortcuts': key,
        'aria-disabled': name === 'deny' ? null : 'true',
        onclick: () => this.#answer(name),
      },
      label,
      ' ',
      h('kbd', { 'aria-hidden': 'true' }, key),
    );
  }

  #laterButton() {
    return h(
      'button',
      { type: 'button', class: 'quiet', onclick: () => this.#leave() },
      'Not now ',
      h('kbd', { 'aria-hidden': 'true' }, 'Esc'),
    );
  }

  async #answer(decision) {
    if (this.#state !== 'open') return;
    if (decision !== 'deny' && performance.now() < this.#armedAt) return;
    const question = this.#question;
    this.#state = 'sending';
    this.#dialog.setAttribute('aria-busy', 'true');
    try {
      await Questions.answer(question, decision);
      if (this.#question === question) this.#finish('done', DONE[decision]);
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
      this.#finish('over', ['Your answer was not used. ', error.message]);
    } else {
      this.#state = 'open';
      put(this.#parts.status, problemBox(error));
    }
  }

  async #over({ requestId, decision }) {
    this.#later.delete(requestId);
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
    else this.#finish('over', 'The question is no longer open.');
    // Nobody waits for this dialog any more, but the next question may be hidden behind it.
    this.#passed = resolution ?? { decision };
    this.offer();
  }

  #showOver(resolution, before = '') {
    const shownAlready = this.#parts.buttons.querySelector('[data-answer]');
    if (!shownAlready) {
      const details = this.#question;
      this.#frame([sentence(details)], parts(details));
    }
    this.#finish(
      'over',
      [before, 'This question is over: ', resolutionText(resolution), '.'],
      `${before}This question is over: ${outcome(resolution.decision)}.`,
    );
  }

  #finish(state, text, said = text) {
    this.#state = state;
    put(this.#parts.left);
    if (this.#question.tool) put(this.#parts.title, sentence(this.#question));
    put(this.#parts.status, h('p', { class: state, tabindex: '-1' }, text));
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
      h(
        'button',
        { type: 'button', class: 'quiet', onclick: () => this.#close() },
        'Close ',
        h('kbd', { 'aria-hidden': 'true' }, 'Esc'),
      ),
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
    else if (!button) {
      this.#parts.buttons.prepend(
        h(
          'button',
          { type: 'button', class: 'next', onclick: () => this.#next() },
          'Next question',
        ),
      );
    }
  }

  #next() {
    const { request_id: current } = this.#question;
    const next = this.#questions.list.find((item) => item.request_id !== current);
    if (next) this.show(next.request_id);
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
    if (event.key === 'Tab') return this.#wrap(event);
    if (event.ctrlKey || event.metaKey || event.altKey || this.#state !== 'open') return undefined;
    const entry = Object.entries(BUTTONS).find(([, button]) => button.key === event.key);
    this.#parts.buttons.querySelector(`[data-answer="${entry?.[0]}"]`)?.focus();
    return undefined;
  }

  /** Keeps Tab inside of the dialog. */
  #wrap(event) {
    const stops = [
      ...this.#dialog.querySelectorAll('button, summary, a[href], [tabindex="0"]'),
    ].filter((element) => element.checkVisibility());
    const edge = event.shiftKey ? stops[0] : stops.at(-1);
    const outside = !stops.includes(document.activeElement);
    if (stops.length === 0 || (document.activeElement !== edge && !(outside && event.shiftKey)))
      return;
    event.preventDefault();
    (event.shiftKey ? stops.at(-1) : stops[0]).focus();
  }

  #tick() {
    if (!['open', 'sending'].includes(this.#state)) return;
    const left = Questions.left(this.#question);
    put(this.#parts.left, left > 0 ? `expires in ${countdown(left)}` : 'expiring');
    this.#parts.left.classList.toggle('soon', left < WARN_MS);
    if (left < WARN_MS && !this.#warned) {
      this.#warned = true;
      announce(`The question expires in ${Math.ceil(left / 1000)} seconds.`);
    }
    if (performance.now() >= this.#armedAt) {
      this.#parts.buttons
        .querySelectorAll('[data-answer][aria-disabled]')
        .forEach((button) => button.removeAttribute('aria-disabled'));
    }
    // The server's word comes as an event; this is for a lost one.
    if (left === 0 && this.#state === 'open') this.#questions.refresh();
  }

  #count() {
    if (!this.#parts.count) return;
    const ids = this.#questions.list.map((item) => item.request_id);
    const at = ids.indexOf(this.#question?.request_id);
    put(
      this.#parts.count,
      ids.length > 1 && at >= 0 ? `Question ${at + 1} of ${ids.length}` : 'Question',
    );
  }
}

function parts(details) {
  return [questionFacts(details), filesPart(details), inputPart(details), callFacts(details)];
}

/** Whether somebody writes into a field; a dialog would take the rest of the word. */
function isTyping() {
  return document.activeElement?.matches('input, textarea, select') ?? false;
}
