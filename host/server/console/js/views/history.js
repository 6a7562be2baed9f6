// *History*: all calls that the journal keeps, with filters and pages.

import { get } from '../api.js';
import { h, put } from '../dom.js';
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

function filters(values) {
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
          FILTERS.map((name) => [name, elements[name].value.trim()]),
        );
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
  );
}

function outcomeGroup(label, options) {
  const group = h('optgroup', {}, options);
  group.label = label;
  return group;
}
