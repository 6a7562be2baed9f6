// *Charts*: how the calls of each tool ended, and how long they took.

import { get } from '../api.js';
import { axis, logScale, rangeBar, stackedBar } from '../bars.js';
import { h, put } from '../dom.js';
import { count, duration, number } from '../format.js';
import { classBadge, nothing, quoted, table } from '../parts.js';
import { place } from '../router.js';
import { short, visible } from '../text.js';

const PERIODS = {
  hour: ['Last hour', 3600e3],
  day: ['Last day', 86_400e3],
  week: ['Last week', 7 * 86_400e3],
  all: ['Everything kept', 0],
};
const ENDS = new Set(['tool.completed', 'tool.failed', 'tool.input_invalid']);
// The same order in every bar, from good to bad.
const ORDER = [
  'succeeded',
  'user_denied',
  'permission_denied',
  'confirmation_timeout',
  'cancelled',
  'validation_error',
  'not_found',
  'execution_error',
  'timeout',
  'resource_exhausted',
  'unknown',
];
const KINDS = {
  succeeded: 'succeeded',
  user_denied: 'refused',
  permission_denied: 'refused',
  confirmation_timeout: 'refused',
  cancelled: 'cancelled',
  validation_error: 'invalid',
  not_found: 'invalid',
  execution_error: 'failed',
  timeout: 'failed',
  resource_exhausted: 'failed',
  unknown: 'unknown',
};
const LEGEND = {
  succeeded: 'succeeded',
  refused: 'refused',
  cancelled: 'cancelled',
  invalid: 'invalid',
  failed: 'failed',
  unknown: 'unknown',
};

export const view = {
  title: () => 'Charts',
  stale: ({ name }) => ENDS.has(name),
  load(route, app, signal) {
    const span = PERIODS[route.parameters.period ?? 'day']?.[1];
    const since = span ? new Date(Date.now() - span).toISOString() : undefined;
    return get(['summary'], { parameters: { since }, signal });
  },
  build,
};

function build(body, route) {
  const current = route.parameters.period ?? 'day';
  const content = h('div');
  const numbers = numbersTable();
  const details = h(
    'details',
    { class: 'numbers' },
    h('summary', {}, 'The same as a table'),
    numbers.element,
  );
  put(
    body,
    h(
      'nav',
      { class: 'periods', 'aria-label': 'Period' },
      h(
        'ul',
        {},
        Object.entries(PERIODS).map(([name, [label]]) =>
          h(
            'li',
            {},
            h(
              'a',
              {
                href: place('charts', '', { period: name }),
                'data-focus': name,
                'aria-current': name === current ? 'true' : null,
              },
              label,
            ),
          ),
        ),
      ),
    ),
    content,
  );
  return ({ tools }) => {
    numbers.update(tools);
    if (tools.length === 0) put(content, nothing('No call ended in this period.'));
    else
      put(
        content,
        h('section', {}, h('h2', {}, 'How calls ended'), legend(tools), outcomes(tools)),
        h('section', {}, h('h2', {}, 'How long they ran'), latencyLegend(), latencies(tools)),
        details,
      );
  };
}

function outcomes(tools) {
  return h(
    'ul',
    { class: 'bars' },
    tools.map((tool) => {
      const parts = grouped(tool.outcomes);
      return h(
        'li',
        {},
        name(tool),
        parts.length > 0
          ? stackedBar(parts, said(tool))
          : h('p', { class: 'note' }, 'no call ended'),
        h('p', { class: 'figure' }, count(tool.calls, 'call')),
      );
    }),
  );
}

function latencies(tools) {
  const ran = tools.filter((tool) => tool.latency_ms);
  if (ran.length === 0) return nothing('No call ran in this period.');
  const scale = logScale(ran.flatMap(({ latency_ms: { p50, max } }) => [p50, max]));
  return h(
    'ul',
    { class: 'bars' },
    ran.map((tool) => {
      const { p50, p90, p99, max } = tool.latency_ms;
      const text = [
        `${tool.tool}: half within ${duration(p50)}`,
        `90 % within ${duration(p90)}`,
        `99 % within ${duration(p99)}`,
        `at most ${duration(max)}`,
      ].join(', ');
      return h(
        'li',
        {},
        name(tool),
        rangeBar(tool.latency_ms, scale, text),
        h('p', { class: 'figure' }, `${duration(p50)} – ${duration(max)}`),
      );
    }),
    h(
      'li',
      { class: 'scale', 'aria-hidden': 'true' },
      h('span'),
      axis(scale, tickWords),
      h('span'),
    ),
  );
}

function tickWords(ms) {
  return ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`;
}

function name(tool) {
  return h(
    'p',
    { class: 'of' },
    h(
      'a',
      { href: place('history', '', { tool: tool.tool }) },
      quoted(short(tool.tool, 80), 'name'),
    ),
    ' ',
    classBadge(tool.class),
  );
}

function grouped(outcomes) {
  const sums = new Map();
  for (const outcome of [...ORDER, ...Object.keys(outcomes)]) {
    const kind = KINDS[outcome] ?? 'failed';
    if (outcomes[outcome] && !sums.get(kind)?.of.has(outcome)) {
      const sum = sums.get(kind) ?? { kind, value: 0, of: new Set() };
      sum.value += outcomes[outcome];
      sum.of.add(outcome);
      sums.set(kind, sum);
    }
  }
  return [...sums.values()];
}

function said(tool) {
  const ends = Object.entries(tool.outcomes).map(
    ([outcome, value]) => `${number(value)} ${outcome.replaceAll('_', ' ')}`,
  );
  return visible(`${tool.tool}: ${ends.join(', ')}`);
}

function legend(tools) {
  const kinds = new Set(tools.flatMap((tool) => grouped(tool.outcomes).map(({ kind }) => kind)));
  return h(
    'ul',
    { class: 'legend' },
    Object.entries(LEGEND)
      .filter(([kind]) => kinds.has(kind))
      .map(([kind, label]) =>
        h('li', {}, h('span', { class: 'swatch', 'data-kind': kind }), label),
      ),
  );
}

function latencyLegend() {
  return h(
    'ul',
    { class: 'legend' },
    h('li', {}, h('span', { class: 'swatch mark half' }), 'half of the calls'),
    h('li', {}, h('span', { class: 'swatch mark most' }), '90 %'),
    h('li', {}, h('span', { class: 'swatch mark all' }), '99 %'),
    h('li', {}, h('span', { class: 'swatch end' }), 'the longest'),
  );
}

function numbersTable() {
  const latency = (key) => (tool) => (tool.latency_ms ? duration(tool.latency_ms[key]) : '–');
  return table({
    caption: 'Calls of each tool',
    empty: 'No call ended in this period.',
    key: (tool) => `${tool.plugin}/${tool.tool}`,
    columns: [
      { name: 'Tool', class: 'main', cell: (tool) => quoted(short(tool.tool, 80), 'name') },
      { name: 'Calls', class: 'number', cell: (tool) => number(tool.calls) },
      {
        name: 'Outcomes',
        cell: (tool) =>
          Object.entries(tool.outcomes).map(([outcome, value], index) => [
            index > 0 && ', ',
            `${number(value)} ${outcome.replaceAll('_', ' ')}`,
          ]),
      },
      { name: 'Half within', class: 'number', cell: latency('p50') },
      { name: '90 % within', class: 'number', cell: latency('p90') },
      { name: '99 % within', class: 'number', cell: latency('p99') },
      { name: 'Longest', class: 'number', cell: latency('max') },
    ],
  });
}
