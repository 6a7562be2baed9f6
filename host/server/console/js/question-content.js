// The content of the question's dialog: the facts of the question, the input, and each file that
// would change.

import { diffTable } from './diff.js';
import { h } from './dom.js';
import { count, time } from './format.js';
import {
  CLASS_MEANS, classBadge, digest, facts, giver, giverText, lines, longText, quoted,
} from './parts.js';
import { indented, short } from './text.js';

const DECISIONS = {
  allow: 'allowed once',
  always: 'allowed for this session',
  deny: 'denied',
  timeout: 'expired without an answer',
  cancelled: 'withdrawn, because the call ended',
  nobody: 'refused, because nobody could be asked',
  deferred: 'left to the client, which will ask again',
};
// Nouns, which are right before the answer and after it.
const CHANGES = { create: 'new file', modify: 'change', delete: 'deletion', unknown: 'may change' };
const WOULD = {
  create: 'would be created',
  modify: 'would change',
  delete: 'would be deleted',
  unknown: 'would be changed or deleted',
};
const REFUSALS = ['deny', 'timeout', 'cancelled', 'nobody'];

const NO_FILE = {
  write: 'The input names no file, so what this call changes cannot be shown in advance.',
  execute: 'The files that a command changes cannot be shown in advance.',
};

/** The outcome of a question, as the end of a sentence. */
export function outcome(decision) {
  return DECISIONS[decision] ?? String(decision);
}

/** The outcome with who gave it and when. */
export function resolutionText(resolution) {
  const by = resolution.answered_by ? [' by ', quoted(resolution.answered_by)] : [];
  const at = resolution.answered_at ? [' at ', time(resolution.answered_at)] : [];
  return [outcome(resolution.decision), by, at];
}

/** The sentence that asks. */
export function sentence(question) {
  return [quoted(question.tool, 'name'), ' (', giver(question.plugin), ')'];
}

/** The same for those who listen. */
export function sentenceText(question) {
  return `${question.tool}, ${giverText(question.plugin)}, class ${question.class}`;
}

/** The outcome of the question before, for those who look and for those who listen. */
export function passed(question, resolution) {
  const { decision } = resolution;
  const shown = decision ? resolutionText(resolution) : 'no longer open';
  return {
    shown: ['The question before, ', sentence(question), ', is over: ', shown, '.'],
    said: `The question before is over: ${decision ? outcome(decision) : shown}. `,
  };
}

/** The facts of a question: class, caller, grants, client and workspace. */
export function questionFacts(question) {
  return facts([
    ['Class', [classBadge(question.class), ' ', CLASS_MEANS[question.class] ?? '']],
    ['Called by', question.called_by && quoted(question.called_by)],
    ['Granted', question.grants?.length > 0 && lines(question.grants)],
    ['Client', question.client && quoted(question.client)],
    ['Workspace', question.workspace && h('code', {}, question.workspace)],
  ]);
}

/** The facts that help to find the call elsewhere. */
export function callFacts(question) {
  return h(
    'section',
    {},
    h('h3', {}, 'The call'),
    facts([
      ['Session', question.session_id && h('code', {}, short(question.session_id, 120))],
      ['Call', h('code', {}, short(question.call_id, 120))],
      ['Plugin file', digest(question.digest)],
      ['Asked', time(question.requested_at)],
    ]),
  );
}

/** The input. */
export function inputPart(details) {
  const body =
    details.input === null
      ? longText(details.input_summary, {
          label: 'Summary of the input',
          grows: true,
          serverCut: details.input_truncated,
          size: details.input_bytes,
        })
      : longText(indented(details.input), {
          label: 'Input',
          grows: true,
          limit: 6000,
          serverCut: details.input_truncated,
          size: details.input_bytes,
        });
  return h('section', {}, h('h3', {}, details.input === null ? 'Input, shortened' : 'Input'), body);
}

/** The files that would change, each with its diff. */
export function filesPart(details) {
  if (details.files === null) return null;
  if (details.files.length === 0) {
    const note = NO_FILE[details.class];
    return note && h('section', {}, h('h3', {}, 'Files'), h('p', { class: 'note' }, note));
  }
  return h(
    'section',
    {},
    h('h3', { class: 'files-heading' }, filesHeading(details.files)),
    details.files.map(file),
  );
}

/** The heading of the files: their changes, or, after a refusal, that there were none. */
export function filesHeading(files, decision = null) {
  const named = count(files.length, 'file');
  if (decision !== null) {
    return REFUSALS.includes(decision) ? `${named} not changed` : 'Files of this call';
  }
  const kinds = new Set(files.map(({ change }) => change));
  if (kinds.size === 1) return `${named} ${WOULD[files[0].change] ?? WOULD.unknown}`;
  const deletes = kinds.has('delete') || kinds.has('unknown');
  return `${named} ${deletes ? WOULD.unknown : WOULD.modify}`;
}

function file(change) {
  const counts =
    change.added === null || change.added === undefined
      ? null
      : h(
          'span',
          { class: 'counts' },
          h('span', { class: 'plus' }, `+${change.added}`),
          ' ',
          h('span', { class: 'minus' }, `−${change.removed}`),
        );
  return h(
    'article',
    { class: 'file' },
    h(
      'h4',
      {},
      h('bdi', { class: 'path' }, change.path),
      ' ',
      h(
        'span',
        { class: 'badge change', 'data-change': change.change },
        CHANGES[change.change] ?? change.change,
      ),
      ' ',
      counts,
    ),
    change.note && h('p', { class: 'note' }, change.note),
    change.diff ? diffTable(change.diff, `Changes of ${short(change.path, 200)}`) : null,
    change.diff_truncated &&
      h(
        'p',
        { class: 'note warn' },
        'The difference is longer than the server sends; the end of it is not shown.',
      ),
  );
}
