// The answers of the dialog with a question: their buttons and keys, and what is said of them.

import { h } from './dom.js';
import { count } from './format.js';
import { quoted } from './parts.js';

/** The time for which a question takes no "allow" after it or its window has come to the front. */
export const ARM_MS = 1000;
export const EARLY =
  'A moment: a question takes no “allow” in its first second, nor in the first second after you ' +
  'come to this window.';

const BUTTONS = {
  deny: { label: 'Deny', key: 'd', hint: 'The call does not run.' },
  allow: { label: 'Allow once', key: 'a', hint: 'This call may run, and no other.' },
  always: {
    label: 'Allow for this session',
    key: 's',
    hint:
      'This tool of this plugin may run in this session without a further question, also calls ' +
      'of it that wait already.',
  },
};
const DONE = { allow: 'Allowed.', always: 'Allowed for this session.', deny: 'Denied.' };
/** The key of *Next question*. */
export const NEXT = 'n';

/** The buttons of the accepted decisions. */
export function answerButtons(decisions, answer) {
  return Object.keys(BUTTONS)
    .filter((name) => decisions.includes(name))
    .map((name) => answerButton(name, answer));
}

function answerButton(name, answer) {
  const { label, key, hint } = BUTTONS[name];
  return h(
    'button',
    {
      type: 'button',
      class: `answer ${name}`,
      'data-answer': name,
      title: hint,
      'aria-keyshortcuts': key,
      'aria-describedby': name === 'always' ? 'question-also' : null,
      onclick: () => answer(name),
    },
    label,
    ' ',
    keyName(key),
  );
}

/** A button beside the answers. */
export function quietButton(label, key, act) {
  return h('button', { type: 'button', class: 'quiet', onclick: act }, label, ' ', keyName(key));
}

/** The way to the next question. */
export function nextButton(act) {
  return h(
    'button',
    { type: 'button', class: 'next', 'aria-keyshortcuts': NEXT, onclick: act },
    'Next question ',
    keyName(NEXT),
  );
}

/** The decision of a key, or null. */
export function decisionOfKey(key) {
  return Object.keys(BUTTONS).find((name) => BUTTONS[name].key === key) ?? null;
}

/** How the buttons work. */
export function keysHint() {
  return [
    'A question takes no “allow” in its first second.',
    h(
      'span',
      { class: 'keys' },
      ' The keys ',
      keyName('a'),
      ', ',
      keyName('s'),
      ' and ',
      keyName('d'),
      ' go to a button, and ',
      keyName('Enter'),
      ' presses it.',
    ),
  ];
}

function keyName(key) {
  return h('kbd', { 'aria-hidden': 'true' }, key);
}

/** The other waiting calls that "allow for this session" lets run as well. */
export function alsoWaiting(question, list) {
  const same = (key) => (other) => other[key] === question[key];
  return list
    .filter(({ request_id: id }) => id !== question.request_id)
    .filter(same('session_id'))
    .filter(same('tool'))
    .filter(same('digest'))
    .filter(same('class')).length;
}

/** The further effect of "allow for this session", before it is given. */
export function alsoText(question, others) {
  if (others === 0) return null;
  return ['“Allow for this session” also lets ', those(question, others), ' run.'];
}

/** The effect of an answer. */
export function doneText(question, decision, others) {
  if (decision !== 'always' || others === 0) return [DONE[decision]];
  return [DONE.always, ' ', those(question, others), others === 1 ? ' runs too.' : ' run too.'];
}

/** The same for those who listen. */
export function doneSaid(question, decision, others) {
  if (decision !== 'always' || others === 0) return DONE[decision];
  const run = others === 1 ? 'runs' : 'run';
  return `${DONE.always} ${waiting(others)} of ${question.tool} ${run} too.`;
}

const waiting = (others) => count(others, 'other waiting call');
const those = (question, others) => [`${waiting(others)} of `, quoted(question.tool, 'name')];
