// *History*: all calls that the journal keeps, with filters and pages.

import { get, Problem } from '../api.js';
import { h, put } from '../dom.js';
import { quoted } from '../parts.js';
import { CALL_EVENTS } from '../progress.js';
import { place } from '../router.js';
import { callsTable } from './calls-table.js';

const PERIODS = {
  hour: [3600e3, 'the last hour'],
  day: [86_400e3, 'the last day'],
  week: [7 * 86_400e3, 'the last week'],
};
const OUTCOMES = {
  Now: ['open', 'waiting', 'running'],
  Ended: ['succeeded', 'failed', 'unknown'],
  'Failed because of': [
    'user_denied',
    'permission_denied',
    'validation_error',
    'not_found',
    'execution_error',
    'timeout',
    'cancelled',
    'confirmation_timeout',
    'resource_exhausted',
  ],
};
const CLASSES = ['none', 'read', 'write', 'execute', 'network'];
// The fields with names, and the names that are known.
const NAMES = {
  tool: async () => (await get(['plugins'])).items.flatMap(({ tools }) => tools.map(named)),
  session: async () =>
    (await get(['sessions'], { parameters: { limit: 200 } })).items.map(({ id, client }) => ({
      name: id,
      label: client,
    })),
};
const FILTERS = ['q', 'tool', 'class', 'outcome', 'session', 'period'];

export const view = {
  title: () => 'History',
  // A page further back does not change.
  stale: ({ name }, route) => !route.parameters.cursor && CALL_EVENTS.has(name),
  load(route, app, signal) {
    const { period, cursor, q, tool, class: side, outcome, session } = route.parameters;
    const span = PERIODS[period]?.[0];
    const since = span ? new Date(Date.now() - span).toISOString() : undefined;
    return get(['calls'], {
      parameters: { q, tool, class: side, outcome, session, since, cursor, limit: 50 },
      signal,
    });
  },
  build,
};

const named = ({ name, title }) => ({ name, label: title });

function build(body, route) {
  const list = callsTable({ caption: 'Calls, the newest first', empty: 'No call matches.' });
  const pages = h('nav', { class: 'pages', 'aria-label': 'Pages' });
  put(body, filters(route.parameters), list.element, pages);
  return ({ items, next_cursor: next }) => {
    list.update(items);
    const { cursor, ...rest } = route.parameters;
    put(
      pages,
      cursor && h('a', { class: 'button', href: place('history', '', rest) }, 'Newest'),
      cursor && h('button', { type: 'button', onclick: () => window.history.back() }, 'Back'),
      next &&
        h(
          'a',
          { class: 'button', href: place('history', '', { ...rest, cursor: next }) },
          'Older calls',
        ),
    );
  };
}

/** Returns the known name that a text means: itself, or the only one of which it is a part. */
function meant(text, names) {
  if (text === '' || names.includes(text)) return text;
  const low = text.toLowerCase();
  const same = names.filter((name) => name.toLowerCase() === low);
  const close = parts(text, names);
  return same[0] ?? (close.length === 1 ? close[0] : text);
}

/** A list of the known names, which fills itself. Without them a field takes whole names. */
function nameList(field) {
  const list = h('datalist', { id: `names-${field}` });
  const names = [];
  NAMES[field]()
    .then((items) => {
      names.push(...new Set(items.map(({ name }) => name)));
      put(list, items.map(({ name, label }) => h('option', { value: name, label })));
    })
    .catch((error) => {
      if (!(error instanceof Problem)) throw error;
    });
  return { list, names };
}

function filters(values) {
  const known = { tool: nameList('tool'), session: nameList('session') };
  const trouble = h('p', { class: 'note warn', role: 'status' });
  const field = (name, label, control) =>
    h('div', { class: `field ${name}` }, h('label', { for: `filter-${name}` }, label), control);
  const input = (name, label) =>
    field(
      name,
      label,
      h('input', {
        id: `filter-${name}`,
        name,
        type: name === 'q' ? 'search' : 'text',
        value: values[name] ?? '',
        list: known[name] && `names-${name}`,
        autocomplete: 'off',
        spellcheck: 'false',
      }),
    );
  const select = (name, label, options) =>
    field(
      name,
      label,
      h('select', { id: `filter-${name}`, name }, h('option', { value: '' }, 'any'), options),
    );
  const option = (name, current, label = name.replaceAll('_', ' ')) =>
    h('option', { value: name, selected: name === current }, label);
  return h(
    'form',
    {
      class: 'filters',
      role: 'search',
      'aria-label': 'Calls',
      onsubmit: (event) => {
        event.preventDefault();
        const { elements } = event.target;
        const given = Object.fromEntries(
          FILTERS.map((name) => [
            name,
            meant(elements[name].value.trim(), known[name]?.names ?? []),
          ]),
        );
        const unclear = Object.keys(known).find((name) => isUnclear(given[name], known[name]));
        put(trouble, unclear && choices(unclear, given[unclear], known[unclear].names));
        if (unclear) return;
        location.hash = place('history', '', given);
      },
    },
    input('q', 'Text'),
    input('tool', 'Tool'),
    input('session', 'Session'),
    select(
      'outcome',
      'Outcome',
      Object.entries(OUTCOMES).map(([label, names]) =>
        outcomeGroup(
          label,
          names.map((name) => option(name, values.outcome)),
        ),
      ),
    ),
    select(
      'class',
      'Class',
      CLASSES.map((name) => option(name, values.class)),
    ),
    select(
      'period',
      'Period',
      Object.entries(PERIODS).map(([name, [, label]]) => option(name, values.period, label)),
    ),
    h(
      'div',
      { class: 'field actions' },
      h('button', { type: 'submit', class: 'primary', 'data-focus': 'search' }, 'Search'),
      h('a', { class: 'button', href: '#/history' }, 'Clear'),
    ),
    known.tool.list,
    known.session.list,
    trouble,
  );
}

/** Whether a text is a part of several known names, and none of them. */
function isUnclear(text, { names }) {
  return text !== '' && !names.includes(text) && parts(text, names).length > 1;
}

function parts(text, names) {
  return names.filter((name) => name.toLowerCase().includes(text.toLowerCase()));
}

function choices(field, text, names) {
  const found = parts(text, names);
  const more = found.length > 6 ? ', …' : '';
  return [
    `More than one ${field} matches `,
    quoted(text),
    ': ',
    found.slice(0, 6).map((name, index) => [index > 0 && ', ', quoted(name, 'name')]),
    `${more}. Choose one.`,
  ];
}

function outcomeGroup(label, options) {
  const group = h('optgroup', {}, options);
  group.label = label;
  return group;
}
