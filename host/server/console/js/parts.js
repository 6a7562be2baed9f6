// The small parts that several views are made of.

import { h, keyed, put } from './dom.js';
import { bytes, count } from './format.js';
import { cut, short, shown } from './text.js';

const STATES = {
  waiting: 'waiting',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  unknown: 'unknown',
};
const CLASSES = ['none', 'read', 'write', 'execute', 'network'];

/** The meaning of each class, for people who see it for the first time. */
export const CLASS_MEANS = {
  none: 'computes only',
  read: 'reads files of the workspace',
  write: 'changes files of the workspace',
  execute: 'runs programs in the workspace',
  network: 'changes something over the network',
};

/** The class of a tool. */
export function classBadge(name) {
  const known = CLASSES.includes(name);
  return h(
    'span',
    { class: 'badge class', 'data-class': known ? name : 'unknown' },
    known ? name : 'no class',
  );
}

/** The state of a call; of a failed one, its error class. */
export function stateBadge(call) {
  const state = STATES[call.state] ?? 'unknown';
  const text = state === 'failed' ? (call.error_class ?? 'failed') : state;
  return h('span', { class: 'badge state', 'data-state': state }, text.replaceAll('_', ' '));
}

/** The client of a call: the name that it claims, or else the id of its token. */
export function clientName(item) {
  return item.client_name ?? item.client ?? null;
}

/** The giver of a tool: a plugin, an MCP server, or the program itself. */
export function giver(plugin) {
  if (!plugin) return ['part of the program'];
  const [kind, name] = isServer(plugin) ? ['MCP server ', plugin.slice(4)] : ['plugin ', plugin];
  return [kind, quoted(short(name, 100), 'name')];
}

/** The same for those who listen. */
export function giverText(plugin) {
  if (!plugin) return 'part of the program';
  return isServer(plugin) ? `MCP server ${plugin.slice(4)}` : `plugin ${plugin}`;
}

/** Whether this is the name of an MCP server: that of a plugin has no `/`. */
export function isServer(plugin) {
  return plugin.startsWith('mcp/');
}

/** Names with their values; those without a value are left out. */
export function facts(pairs) {
  const rows = pairs.filter(([, value]) => ![null, undefined, false, ''].includes(value));
  return h(
    'dl',
    { class: 'facts' },
    rows.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
  );
}

/** Text of others inside a line. Its direction does not touch the words around it. */
export function quoted(text, kind = 'quoted') {
  return h('bdi', { class: kind }, text);
}

/** Texts of a person, each on its line. */
export function lines(texts) {
  return h(
    'ul',
    { class: 'lines' },
    texts.map((text) => h('li', {}, h('code', {}, text))),
  );
}

/** A digest: its first characters, and all of them on request. */
export function digest(text) {
  if (!text) return null;
  const [name, hex] = text.includes(':') ? text.split(':', 2) : ['', text];
  return h(
    'details',
    { class: 'digest' },
    h('summary', {}, h('code', {}, `${name ? `${name}:` : ''}${hex.slice(0, 12)}…`)),
    h('code', { class: 'whole' }, text),
  );
}

/**
 * A text of any length in a box. Beyond `limit` characters it is cut, with a button for the rest;
 * what the server itself has cut is said below. A box that `grows` has no scroll bar.
 */
export function longText(
  text,
  { limit = 4000, label, grows = false, serverCut = false, size = null } = {},
) {
  const tabindex = grows ? '-1' : '0';
  const kind = grows ? 'text grows' : 'text';
  const box = h('pre', { class: kind, tabindex, role: 'group', 'aria-label': label });
  const parts = [box];
  const first = cut(text, limit);
  box.append(shown(first, true));
  if (first.length < text.length) {
    const rest = h(
      'button',
      {
        type: 'button',
        class: 'more',
        onclick: () => {
          box.replaceChildren(shown(text, true));
          rest.remove();
          box.focus();
        },
      },
      `Show the other ${count(text.length - first.length, 'character')}`,
    );
    parts.push(rest);
  }
  if (serverCut) {
    const whole = size === null ? '' : ` of ${bytes(size)}`;
    parts.push(h('p', { class: 'note' }, `The server keeps only the beginning${whole}.`));
  }
  return h('div', { class: 'long' }, parts);
}

/** Says that there is nothing. */
export function nothing(...children) {
  return h('p', { class: 'nothing' }, children);
}

/** Shows a failed request. */
export function problemBox(error, again) {
  return h(
    'div',
    { class: 'problem', role: 'alert' },
    h('p', {}, h('strong', {}, error.title || 'This did not work.'), ' ', error.message),
    again && h('p', {}, h('button', { type: 'button', onclick: again }, 'Try again')),
  );
}

/**
 * A table that becomes a list of cards on a narrow screen. The roles are given because the styles
 * of the cards would take them away.
 */
export function table({ caption, columns, key, empty }) {
  const body = h('tbody', { role: 'rowgroup' });
  const head = h(
    'thead',
    { role: 'rowgroup' },
    h(
      'tr',
      { role: 'row' },
      columns.map((column) =>
        h('th', { role: 'columnheader', scope: 'col', class: column.class }, column.name),
      ),
    ),
  );
  const whole = h(
    'table',
    { role: 'table' },
    h('caption', { class: 'unseen' }, caption),
    head,
    body,
  );
  const none = nothing(empty);
  const element = h('div', { class: 'table' });
  const row = (item) =>
    h(
      'tr',
      { role: 'row' },
      columns.map((column) =>
        h(
          'td',
          { role: 'cell', class: column.class, 'data-label': column.name },
          h('div', {}, column.cell(item)),
        ),
      ),
    );
  return {
    element,
    update(items) {
      const wanted = items.length > 0 ? whole : none;
      if (element.firstElementChild !== wanted) put(element, wanted);
      keyed(body, items, key, row);
    },
  };
}
