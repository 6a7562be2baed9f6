// *Now*: the questions that wait for an answer, and the calls that run.

import { get, post } from '../api.js';
import { announce } from '../announce.js';
import { h, keyed, put } from '../dom.js';
import { countdown, count, number } from '../format.js';
import { classBadge, clientName, giver, nothing, problemBox, quoted } from '../parts.js';
import { CALL_EVENTS, since } from '../progress.js';
import { Questions } from '../questions.js';
import { place } from '../router.js';
import { short } from '../text.js';
import { firstSteps } from './first-steps.js';

const SHOWN = 100;
const HOUR_MS = 3600e3;
// How a call ends whose question has expired.
const MISSED = 'confirmation_timeout';

export const view = {
  title: () => 'Now',
  every: 15_000,
  stale: ({ name }) => CALL_EVENTS.has(name),
  async load(route, app, signal) {
    const calls = (parameters) => get(['calls'], { parameters, signal });
    const since = new Date(Date.now() - HOUR_MS).toISOString();
    const [open, missed, any] = await Promise.all([
      calls({ outcome: 'open', limit: SHOWN }),
      calls({ outcome: MISSED, since, limit: SHOWN }),
      route.isKnown ? null : calls({ limit: 1 }),
    ]);
    // Asked again only until there is a call.
    route.isKnown ||= any.items.length > 0;
    return { open, missed, isFirst: !route.isKnown };
  },
  build,
};

function build(body, route, app) {
  const asking = h('ul', { class: 'cards', 'aria-labelledby': 'waiting' });
  const noQuestion = nothing('No call waits for an answer.');
  const running = h('ul', { class: 'cards', 'aria-labelledby': 'running' });
  const noCall = nothing('No call runs.');
  const more = h('p', { class: 'note' });
  const missed = h('p', { class: 'note missed' });
  const first = h('div');
  put(
    body,
    h(
      'section',
      {},
      h('h2', { id: 'waiting' }, 'Waiting for an answer'),
      asking,
      noQuestion,
      missed,
    ),
    h('section', {}, h('h2', { id: 'running' }, 'Running'), running, noCall, more),
    first,
  );

  const showQuestions = () => {
    const items = app.questions.list;
    noQuestion.hidden = items.length > 0;
    asking.hidden = items.length === 0;
    keyed(
      asking,
      items.map(({ deadline, remaining_ms: left, ...rest }) => rest),
      (item) => item.request_id,
      (item) => questionCard(item, app),
    );
    tick();
  };
  const tick = () => {
    const open = new Map(app.questions.list.map((item) => [item.request_id, item]));
    for (const card of asking.children) {
      const question = open.get(card.key);
      if (question) put(card.querySelector('.left'), `${countdown(Questions.left(question))} left`);
    }
    for (const card of running.children) {
      put(card.querySelector('.elapsed'), since(card.dataset.since));
      put(card.querySelector('.news'), app.progress.of(card.call));
    }
  };
  const timer = setInterval(tick, 1000);
  app.questions.addEventListener('change', showQuestions);
  app.progress.addEventListener('change', tick);
  showQuestions();

  const show = ({ open: { items, next_cursor: rest }, missed: late, isFirst }) => {
    put(missed, late.items.length > 0 && missedLine(late));
    // Kept, so that a text that somebody marks in it stays marked.
    if (isFirst && !first.hasChildNodes()) put(first, firstSteps());
    else if (!isFirst) put(first);
    const calls = items.filter((call) => call.state === 'running');
    noCall.hidden = calls.length > 0;
    running.hidden = calls.length === 0;
    keyed(running, calls, (call) => call.id, callCard);
    put(
      more,
      rest && [
        `The newest ${count(SHOWN, 'open call')} are shown. `,
        h('a', { href: place('history', '', { outcome: 'open' }) }, 'All of them'),
      ],
    );
    tick();
  };
  show.leave = () => {
    clearInterval(timer);
    app.questions.removeEventListener('change', showQuestions);
    app.progress.removeEventListener('change', tick);
  };
  return show;
}

function missedLine({ items, next_cursor: rest }) {
  const more = rest ? ' or more' : '';
  return [
    `${number(items.length)}${more} ${items.length === 1 ? 'question' : 'questions'} ended `,
    'without an answer in the last hour. ',
    h(
      'a',
      { href: place('history', '', { outcome: MISSED, period: 'hour' }), 'data-focus': 'missed' },
      'Their calls',
    ),
  ];
}

function questionCard(question, app) {
  return h(
    'li',
    { class: 'card asks' },
    h(
      'div',
      { class: 'line' },
      h('h3', {}, quoted(question.tool, 'name')),
      classBadge(question.class),
      h('span', { class: 'left' }),
    ),
    h('p', { class: 'from' }, origin(question)),
    h('code', { class: 'preview' }, short(question.input_summary, 300)),
    question.projected_modifications.length > 0 &&
      h('p', {}, 'Would change or delete ', listed(question.projected_modifications)),
    h(
      'p',
      { class: 'actions' },
      h(
        'button',
        {
          type: 'button',
          class: 'primary',
          'data-focus': 'review',
          onclick: () => app.ask(question.request_id),
        },
        'Review and answer',
      ),
    ),
  );
}

function callCard(call) {
  const trouble = h('div');
  const card = h(
    'li',
    { class: 'card', 'data-since': call.started_at ?? call.requested_at },
    h(
      'div',
      { class: 'line' },
      h(
        'h3',
        {},
        h('a', { href: place('call', call.id), 'data-focus': 'call' }, quoted(call.tool, 'name')),
      ),
      classBadge(call.class),
      h('span', { class: 'elapsed' }),
    ),
    h('p', { class: 'from' }, origin(call)),
    call.input_preview && h('code', { class: 'preview' }, short(call.input_preview, 300)),
    h('p', { class: 'news' }),
    trouble,
    h(
      'p',
      { class: 'actions' },
      h(
        'button',
        { type: 'button', 'data-focus': 'cancel', onclick: () => cancel(call, trouble) },
        'Cancel the call',
      ),
    ),
  );
  card.call = call;
  return card;
}

function origin(item) {
  return [
    giver(item.plugin),
    clientName(item) && [' · for ', quoted(short(clientName(item), 60))],
    item.session_id && [
      ' · session ',
      h('a', { href: place('session', item.session_id) }, quoted(short(item.session_id, 40))),
    ],
  ];
}

function listed(paths) {
  const first = paths
    .slice(0, 3)
    .map((path, index) => [index > 0 && ', ', h('bdi', { class: 'path' }, short(path, 160))]);
  return [first, paths.length > 3 && ` and ${count(paths.length - 3, 'more file')}`];
}

/** Cancels a call. Its end comes as an event. */
export async function cancel(call, trouble) {
  try {
    const { cancelled } = await post([
      'sessions',
      call.session_id ?? '-',
      'calls',
      call.call_id,
      'cancel',
    ]);
    announce(cancelled > 0 ? 'The call is being cancelled.' : 'The call had already ended.');
    put(trouble, cancelled > 0 ? null : h('p', { class: 'note' }, 'The call had already ended.'));
  } catch (error) {
    put(trouble, problemBox(error));
  }
}
