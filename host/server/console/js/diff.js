// A unified diff as a table of lines: both line numbers, the sign, and the text.

import { h, put } from './dom.js';
import { count } from './format.js';
import { shown } from './text.js';

// Longer lists of lines are shown on request; a page of a million cells helps nobody.
const FIRST_LINES = 400;
const LONGEST_LINE = 2000;
const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;
const KINDS = { '+': 'added', '-': 'removed', ' ': 'same', '\\': 'remark' };
const SAID = { added: 'added', removed: 'removed' };

/** Splits a diff into lines with their numbers. The two lines with the names are left out. */
export function parse(diff) {
  const lines = [];
  let before = 0;
  let after = 0;
  let inside = false;
  const texts = diff.split('\n');
  if (texts.at(-1) === '') texts.pop();
  for (const text of texts) {
    const hunk = HUNK.exec(text);
    if (hunk) {
      [before, after, inside] = [Number(hunk[1]), Number(hunk[2]), true];
      lines.push({ kind: 'hunk', text });
    } else if (inside) {
      const kind = KINDS[text[0]] ?? 'same';
      const line = { kind, text: text.slice(1), sign: text[0] ?? ' ' };
      if (kind === 'removed' || kind === 'same') line.before = before++;
      if (kind === 'added' || kind === 'same') line.after = after++;
      lines.push(line);
    } else if (!text.startsWith('--- ') && !text.startsWith('+++ ')) {
      lines.push({ kind: 'remark', text, sign: ' ' });
    }
  }
  return lines;
}

/** Shows a diff. It has no scroll box of its own: the dialog has one. */
export function diffTable(diff, label) {
  const lines = parse(diff);
  const body = h('tbody');
  const more = h('div');
  const box = h(
    'div',
    { class: 'diff', tabindex: '-1', role: 'group', 'aria-label': label },
    h(
      'table',
      {},
      h('caption', { class: 'unseen' }, label),
      h(
        'thead',
        { class: 'unseen' },
        h(
          'tr',
          {},
          ['Old line', 'New line', 'Change', 'Text'].map((name) => h('th', { scope: 'col' }, name)),
        ),
      ),
      body,
    ),
  );
  const show = (limit) => {
    put(body, lines.slice(0, limit).map(row));
    if (lines.length <= limit) return more.replaceChildren();
    return put(
      more,
      h(
        'button',
        {
          type: 'button',
          class: 'more',
          onclick: () => {
            show(Infinity);
            box.focus();
          },
        },
        `Show the other ${count(lines.length - limit, 'line')}`,
      ),
    );
  };
  show(FIRST_LINES);
  return h('div', { class: 'long' }, box, more);
}

function row(line) {
  if (line.kind === 'hunk') {
    return h('tr', { class: 'hunk' }, h('td', { colspan: '4' }, line.text));
  }
  const sign = SAID[line.kind]
    ? [
        h('span', { 'aria-hidden': 'true' }, line.sign),
        h('span', { class: 'unseen' }, SAID[line.kind]),
      ]
    : line.sign;
  return h(
    'tr',
    { class: line.kind },
    h('td', { class: 'line' }, line.before ?? ''),
    h('td', { class: 'line' }, line.after ?? ''),
    h('td', { class: 'sign' }, sign),
    h('td', { class: 'code' }, code(line.text)),
  );
}

function code(text) {
  const box = h('div', {}, shown(text.slice(0, LONGEST_LINE), true));
  if (text.length > LONGEST_LINE) {
    const rest = text.length - LONGEST_LINE;
    box.append(
      h(
        'button',
        {
          type: 'button',
          class: 'more',
          onclick: () => {
            box.replaceChildren(shown(text, true));
          },
        },
        `Show the other ${count(rest, 'character')}`,
      ),
    );
  }
  return box;
}
