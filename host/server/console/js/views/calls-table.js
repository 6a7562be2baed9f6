// The table of calls that several views show.

import { h } from '../dom.js';
import { duration, time } from '../format.js';
import { classBadge, clientName, quoted, stateBadge, table } from '../parts.js';
import { place } from '../router.js';
import { short } from '../text.js';

/** Makes the table. `more` are further columns. */
export function callsTable({ caption, empty, more = [] }) {
  return table({
    caption,
    empty,
    key: (call) => call.id,
    columns: [
      {
        name: 'Tool',
        class: 'main wide',
        cell: (call) => [
          h(
            'a',
            { href: place('call', call.id), 'data-focus': 'call' },
            quoted(short(call.tool, 120), 'name'),
          ),
          call.input_preview && h('code', { class: 'preview' }, short(call.input_preview, 140)),
        ],
      },
      { name: 'Outcome', cell: stateBadge },
      { name: 'Class', cell: (call) => classBadge(call.class) },
      {
        name: 'Time',
        class: 'number',
        cell: (call) => (call.started_at ? duration(call.duration_ms) : '–'),
      },
      { name: 'Client', class: 'source', cell: who },
      { name: 'Asked at', class: 'number', cell: (call) => time(call.requested_at) },
      ...more,
    ],
  });
}

function who(call) {
  const name = clientName(call) ?? (call.session_id ? short(call.session_id, 24) : null);
  if (name === null) return '–';
  return call.session_id
    ? h('a', { href: place('session', call.session_id) }, quoted(short(name, 40)))
    : quoted(short(name, 40));
}
