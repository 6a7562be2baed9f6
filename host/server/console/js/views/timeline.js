// The events of a call, in their order, with the time since the first.

import { h } from '../dom.js';
import { count, duration } from '../format.js';
import { longText } from '../parts.js';
import { outcome } from '../question-content.js';
import { short } from '../text.js';

const WORDS = {
  'tool.called': () => 'began to run',
  'tool.completed': ({ success, duration_ms: ms }) =>
    `${success === false ? 'ended with a failure' : 'completed'}, ran ${duration(ms)}`,
  'tool.failed': (data) => `failed: ${data.error_class}. ${short(data.message, 400)}`,
  'tool.input_invalid': (data) => `input refused. ${short(data.message, 400)}`,
  'tool.confirmation_requested': (data) =>
    data.projected_modifications?.length
      ? `a person is asked; it would change ${short(data.projected_modifications.join(', '), 300)}`
      : 'a person is asked',
  'tool.confirmation_resolved': (data) => `question over: ${outcome(data.decision)}`,
  'tool.progress': ({ done, total, message }) =>
    `progress: ${done}${total ? ` of ${total}` : ''} ${short(message ?? '', 200)}`,
  'tool.log': (data) => `${data.level}: ${short(data.message, 400)}`,
};

/** Makes the list. Successive pieces of output are one entry. */
export function timeline(events) {
  const start = events.length > 0 ? Date.parse(events[0].time) : 0;
  return h(
    'ol',
    { class: 'timeline' },
    joined(events).map((event) =>
      h(
        'li',
        {},
        h(
          'time',
          { datetime: event.time, title: event.time },
          offset(Date.parse(event.time) - start),
        ),
        h('div', {}, h('code', { class: 'event' }, event.name), ' ', words(event)),
      ),
    ),
  );
}

function offset(ms) {
  return ms <= 0 ? '0' : `+${duration(ms)}`;
}

function words(event) {
  if (event.name === 'tool.output_delta') {
    return longText(event.data.partial_output, { limit: 400, label: 'Output so far' });
  }
  return WORDS[event.name]?.(event.data) ?? `(${count(Object.keys(event.data).length, 'field')})`;
}

function joined(events) {
  const list = [];
  for (const event of events) {
    const last = list.at(-1);
    if (event.name === 'tool.output_delta' && last?.name === event.name) {
      last.data = { partial_output: last.data.partial_output + event.data.partial_output };
    } else {
      list.push({ ...event });
    }
  }
  return list;
}
