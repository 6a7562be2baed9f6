// The elements of the dialog with a question. Its header and its footer with the answers are always
// in sight, and what is asked scrolls between them.

import { h, put } from './dom.js';
import { callFacts, filesPart, inputPart, questionFacts } from './question-content.js';

/** Fills the dialog, and returns its parts. `before` is what became of the question before. */
export function fillDialog(dialog, title, content, before) {
  const parts = {
    notices: h('div', { class: 'notices' }),
    title: h('h2', { id: 'question-title', tabindex: '-1' }, title),
    count: h('p', { class: 'count' }),
    left: h('p', { class: 'left' }),
    content: h(
      'div',
      { class: 'content', tabindex: '0', role: 'group', 'aria-label': 'What is asked' },
      content,
    ),
    status: h('div', { class: 'status' }),
    also: h('p', { class: 'also', id: 'question-also' }),
    says: h('div', { class: 'unseen', role: 'alert', 'data-says': '' }),
    buttons: h('div', { class: 'buttons' }),
    hint: h('p', { class: 'hint' }),
  };
  put(
    dialog,
    h(
      'header',
      {},
      parts.notices,
      before && h('p', { class: 'before' }, before.shown),
      h('div', { class: 'line' }, parts.count, parts.left),
      parts.title,
    ),
    parts.content,
    h('footer', {}, parts.status, parts.also, parts.says, parts.buttons, parts.hint),
  );
  return parts;
}

/** The parts of a question. */
export function questionParts(details) {
  return [questionFacts(details), filesPart(details), inputPart(details), callFacts(details)];
}

/** Keeps Tab inside of the dialog. */
export function wrapTab(dialog, event) {
  const stops = [
    ...dialog.querySelectorAll('button, summary, a[href], [tabindex="0"]'),
  ].filter((element) => element.checkVisibility());
  const edge = event.shiftKey ? stops[0] : stops.at(-1);
  const outside = !stops.includes(document.activeElement);
  if (stops.length === 0 || (document.activeElement !== edge && !(outside && event.shiftKey)))
    return;
  event.preventDefault();
  (event.shiftKey ? stops.at(-1) : stops[0]).focus();
}

/** Whether somebody writes into a field; a dialog would take the rest of the word. */
export function isTyping() {
  return document.activeElement?.matches('input, textarea, select') ?? false;
}
