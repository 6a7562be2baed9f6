// One session: what it is, and its calls.

import { get } from '../api.js';
import { h, keyed, put } from '../dom.js';
import { number, time } from '../format.js';
import { facts, quoted } from '../parts.js';
import { place } from '../router.js';
import { short } from '../text.js';
import { callsTable } from './calls-table.js';
import { sessionActions, sessionState, way } from './sessions.js';

const SHOWN = 20;

export const view = {
  title: () => 'Session',
  every: 15_000,
  stale: ({ data }, route) => data.session_id === route.id,
  async load(route, app, signal) {
    const [session, calls] = await Promise.all([
      get(['sessions', route.id], { signal }),
      get(['calls'], { parameters: { session: route.id, limit: SHOWN }, signal }),
    ]);
    return { session, calls };
  },
  build,
};

function build(body, route, app) {
  const trouble = h('div');
  const about = h('div');
  const list = callsTable({
    caption: 'Calls of this session, the newest first',
    empty: 'It has made no call.',
  });
  const more = h('p');
  put(body, trouble, about, h('section', {}, h('h2', {}, 'Calls'), list.element, more));
  return ({ session, calls }) => {
    keyed(
      about,
      [session],
      () => 'session',
      (item) => head(item, trouble, app),
    );
    list.update(calls.items);
    put(
      more,
      calls.next_cursor &&
        h(
          'a',
          { href: place('history', '', { session: session.id }) },
          'All calls of this session',
        ),
    );
  };
}

function head(session, trouble, app) {
  return h(
    'section',
    {},
    h(
      'div',
      { class: 'line' },
      h('h2', {}, quoted(short(session.id, 120), 'name')),
      sessionState(session),
    ),
    facts([
      ['Client', session.client && quoted(short(session.client, 120))],
      ['Session', session.id.length > 120 && h('code', {}, short(session.id, 260))],
      ['Calls come by', way(session)],
      ['Protocol', session.protocol && h('code', {}, short(session.protocol, 40))],
      ['Client id', session.client_id && h('code', {}, short(session.client_id, 120))],
      ['Workspace', session.workspace && h('bdi', { class: 'path' }, session.workspace)],
      [
        'Tools',
        session.tools === null
          ? 'all'
          : session.tools.map((tool, index) => [index > 0 && ', ', quoted(short(tool, 80))]),
      ],
      ['Calls', number(session.calls)],
      ['Opened', time(session.opened_at)],
      ['Closed', session.closed_at && time(session.closed_at)],
    ]),
    session.state === 'open' && sessionActions(session, trouble, app),
  );
}
