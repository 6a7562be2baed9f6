// One call: what went in, what came out, what it used and changed, who allowed it, and when.

import { get } from '../api.js';
import { h, keyed, put } from '../dom.js';
import { bytes, count, duration, number, time } from '../format.js';
import {
  classBadge,
  clientName,
  digest,
  facts,
  giver,
  longText,
  nothing,
  quoted,
  stateBadge,
} from '../parts.js';
import { resolutionText } from '../question-content.js';
import { place } from '../router.js';
import { indented, short } from '../text.js';
import { callsTable } from './calls-table.js';
import { cancel } from './now.js';
import { timeline } from './timeline.js';

const OPEN = ['waiting', 'running'];

export const view = {
  title: () => 'Call',
  stale: ({ data }, route) => data.tool_use_id === route.callId,
  async load(route, app, signal) {
    const call = await get(['calls', route.id], { signal });
    // Events name a call by its caller's id.
    route.callId = call.call_id;
    return call;
  },
  build: (body) => (call) =>
    keyed(
      body,
      sections(call),
      ({ name }) => name,
      ({ name, data }) => h('section', { class: `call-${name}` }, SECTIONS[name](data)),
    ),
};

const SECTIONS = {
  head: (call) => [
    h(
      'div',
      { class: 'line' },
      h('h2', {}, quoted(call.tool, 'name')),
      stateBadge(call),
      classBadge(call.class),
    ),
    call.state === 'unknown' &&
      h(
        'p',
        { class: 'note warn' },
        'The server ended while this call ran. Nobody knows whether it finished, so look at what ',
        'it may have changed.',
      ),
    OPEN.includes(call.state) && cancelButton(call),
    facts([
      // A tool that there is not has no class.
      ['From', call.class && giver(call.plugin)],
      ['Plugin file', digest(call.digest)],
      ['Client', clientName(call) && client(call)],
      [
        'Session',
        call.session_id &&
          h('a', { href: place('session', call.session_id) }, quoted(short(call.session_id, 120))),
      ],
      ['Turn', call.turn_id && h('code', {}, short(call.turn_id, 120))],
      ['Call id', h('code', {}, short(call.call_id, 260))],
      [
        'Made by',
        call.parent_id && h('a', { href: place('call', call.parent_id) }, `call ${call.parent_id}`),
      ],
      ['Asked', time(call.requested_at)],
      ['Started', call.started_at ? time(call.started_at) : 'it never ran'],
      ['Ended', call.ended_at && time(call.ended_at)],
      ['Time', call.duration_ms !== null && duration(call.duration_ms)],
    ]),
  ],

  error: (error) => [
    h('h2', {}, 'Error'),
    h('p', {}, h('strong', {}, error.class)),
    longText(error.message, { label: 'Error message' }),
    error.detail &&
      longText(JSON.stringify(error.detail, null, 2), { label: 'Detail of the error' }),
  ],

  input: (call) => [
    h('h2', {}, 'Input'),
    call.input === null
      ? nothing('The input is not recorded; its digest is.')
      : longText(indented(call.input), {
          label: 'Input',
          serverCut: call.input_truncated,
          size: call.input_bytes,
        }),
    digest(call.input_digest),
  ],

  output: (call) => [
    h('h2', {}, 'Output'),
    call.output === null && call.output_other.length === 0
      ? nothing(OPEN.includes(call.state) ? 'No output so far.' : 'No output.')
      : null,
    call.output !== null &&
      longText(call.output, {
        label: 'Output',
        serverCut: call.output_truncated,
        size: call.output_bytes,
      }),
    call.output_other.length > 0 &&
      h(
        'ul',
        {},
        call.output_other.map((block) =>
          h('li', {}, `${block.kind}, ${block.media_type}, ${bytes(block.bytes)}`),
        ),
      ),
  ],

  changes: (call) => [
    h('h2', {}, 'Changes'),
    call.command_executed !== null && [
      h('h3', {}, 'Command'),
      longText(call.command_executed, { label: 'Command' }),
    ],
    call.files_modified.length > 0 && [
      h('h3', {}, 'Files'),
      h(
        'ul',
        { class: 'paths' },
        call.files_modified.map((path) => h('li', {}, h('bdi', { class: 'path' }, path))),
      ),
    ],
    call.files_modified_unlisted > 0 &&
      h(
        'p',
        { class: 'note' },
        `${count(call.files_modified_unlisted, 'more file')} changed; their names are not kept.`,
      ),
  ],

  usage: (usage) => [
    h('h2', {}, 'Used'),
    facts([
      ['Most memory', bytes(usage.peak_memory_bytes)],
      ['Read', bytes(usage.bytes_read)],
      ['Written', bytes(usage.bytes_written)],
      ['Dropped output', usage.truncated_bytes > 0 && bytes(usage.truncated_bytes)],
    ]),
  ],

  metadata: (data) => [
    h('h2', {}, 'For the program, not the model'),
    longText(JSON.stringify(data, null, 2), { label: 'Metadata' }),
  ],

  confirmations: (list) => [
    h('h2', {}, 'Questions'),
    h(
      'ul',
      { class: 'plain' },
      list.map((item) =>
        h(
          'li',
          {},
          'Asked at ',
          time(item.requested_at),
          ': ',
          item.resolution
            ? resolutionText(item.resolution)
            : h('a', { href: place('question', item.request_id) }, 'waits for an answer'),
        ),
      ),
    ),
  ],

  nested: (calls) => {
    const list = callsTable({ caption: 'Calls made by this call', empty: '' });
    list.update(calls);
    return [h('h2', {}, 'Calls made by this call'), list.element];
  },

  timeline: ({ events, truncated }) => [
    h('h2', {}, 'Timeline'),
    timeline(events),
    truncated &&
      h('p', { class: 'note' }, `Only the first ${number(events.length)} events are shown.`),
  ],
};

function sections(call) {
  const {
    events,
    events_truncated: truncated,
    nested,
    confirmations,
    usage,
    metadata,
    error,
  } = call;
  const {
    input,
    input_truncated,
    input_bytes,
    input_digest,
    output,
    output_truncated,
    output_bytes,
    output_other,
    files_modified,
    files_modified_unlisted,
    command_executed,
  } = call;
  const changed =
    command_executed !== null || files_modified.length > 0 || files_modified_unlisted > 0;
  return [
    { name: 'head', data: head(call) },
    error && { name: 'error', data: error },
    { name: 'input', data: { input, input_truncated, input_bytes, input_digest } },
    {
      name: 'output',
      data: { output, output_truncated, output_bytes, output_other, state: call.state },
    },
    changed && {
      name: 'changes',
      data: { files_modified, files_modified_unlisted, command_executed },
    },
    confirmations.length > 0 && { name: 'confirmations', data: confirmations },
    nested.length > 0 && { name: 'nested', data: nested },
    { name: 'timeline', data: { events, truncated } },
    usage && { name: 'usage', data: usage },
    metadata && { name: 'metadata', data: metadata },
  ].filter(Boolean);
}

/** The members in the first part of the page. Another value of one draws that part again. */
const HEAD = [
  'id',
  'call_id',
  'session_id',
  'turn_id',
  'client',
  'client_name',
  'tool',
  'plugin',
  'class',
  'state',
  'error_class',
  'digest',
  'parent_id',
  'requested_at',
  'started_at',
  'ended_at',
  'duration_ms',
];

const head = (call) => Object.fromEntries(HEAD.map((key) => [key, call[key]]));

/** The name that the client claims, and the id of its token in short. */
function client(call) {
  const name = quoted(short(clientName(call), 120));
  if (!call.client_name || !call.client) return name;
  return [name, ' ', h('code', { class: 'detail', title: call.client }, short(call.client, 14))];
}

function cancelButton(call) {
  const trouble = h('div');
  const button = h(
    'button',
    { type: 'button', 'data-focus': 'cancel', onclick: () => cancel(call, trouble) },
    'Cancel the call',
  );
  const box = h('div', { class: 'actions' }, button);
  const whole = h('div');
  put(whole, box, trouble);
  return whole;
}
