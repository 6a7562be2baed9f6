// *Sessions*: who is connected, where they work, and the means to stop them.

import { announce } from '../announce.js';
import { get, post } from '../api.js';
import { ask } from '../ask.js';
import { h, put } from '../dom.js';
import { count, number, time } from '../format.js';
import { problemBox, quoted, table } from '../parts.js';
import { place } from '../router.js';
import { short } from '../text.js';

export const view = {
  title: () => 'Sessions',
  every: 10_000,
  stale: ({ name }, route) =>
    !route.parameters.cursor &&
    name !== 'tool.progress' &&
    name !== 'tool.log' &&
    name !== 'tool.output_delta',
  load: (route, app, signal) =>
    get(['sessions'], { parameters: { cursor: route.parameters.cursor, limit: 50 }, signal }),
  build,
};

function build(body, route, app) {
  const trouble = h('div');
  const list = table({
    caption: 'Sessions, the newest first',
    empty: 'There is no session.',
    key: (session) => session.id,
    columns: [
      {
        name: 'Session',
        class: 'main wide',
        cell: (session) => [
          h(
            'a',
            { href: place('session', session.id), 'data-focus': 'session' },
            quoted(short(session.id, 60), 'name'),
          ),
          session.client && quoted(short(session.client, 60), 'title'),
        ],
      },
      { name: 'State', cell: sessionState },
      { name: 'By', cell: (session) => way(session) },
      {
        name: 'Workspace',
        class: 'wide',
        cell: (session) =>
          session.workspace ? h('bdi', { class: 'path' }, short(session.workspace, 160)) : '–',
      },
      {
        name: 'Calls',
        class: 'number',
        cell: (session) =>
          h(
            'a',
            { href: place('history', '', { session: session.id }) },
            number(session.calls),
            session.calls_open > 0 && ` (${number(session.calls_open)} open)`,
          ),
      },
      { name: 'Opened', class: 'number', cell: (session) => time(session.opened_at) },
      { name: 'Actions', class: 'acts', cell: (session) => sessionActions(session, trouble, app) },
    ],
  });
  const pages = h('nav', { class: 'pages', 'aria-label': 'Pages' });
  put(body, trouble, list.element, pages);
  return ({ items, next_cursor: next }) => {
    list.update(items);
    put(
      pages,
      route.parameters.cursor && h('a', { class: 'button', href: '#/sessions' }, 'Newest'),
      next &&
        h(
          'a',
          { class: 'button', href: place('sessions', '', { cursor: next }) },
          'Older sessions',
        ),
    );
  };
}

const WAYS = {
  http: 'HTTP',
  'mcp-http': 'MCP over HTTP',
  'mcp-stdio': 'MCP over standard input',
};

/** The way by which the calls of a session come. */
export function way({ origin }) {
  return WAYS[origin] ?? 'not known';
}

/** The state of a session. */
export function sessionState(session) {
  const open = session.state === 'open';
  return h(
    'span',
    { class: 'badge state', 'data-state': open ? 'running' : 'closed' },
    open ? 'open' : 'closed',
  );
}

/** The buttons of a session, if it is open. */
export function sessionActions(session, trouble, app) {
  if (session.state !== 'open') return '–';
  // Sessions of one token have the same client.
  const which = short(session.id, 60);
  const attempt = async (work, done) => {
    try {
      put(trouble);
      announce(done(await work()));
      app.refresh();
    } catch (error) {
      put(trouble, problemBox(error));
    }
  };
  return h(
    'div',
    { class: 'buttons' },
    h(
      'button',
      {
        type: 'button',
        'data-focus': 'cancel',
        disabled: session.calls_open === 0,
        'aria-label': `Cancel calls of session ${which}`,
        onclick: () =>
          attempt(
            () => post(['sessions', session.id, 'cancel']),
            ({ cancelled }) => `${count(cancelled, 'call')} cancelled.`,
          ),
      },
      'Cancel calls',
    ),
    h(
      'button',
      {
        type: 'button',
        'data-focus': 'close',
        'aria-label': `Close session ${which}`,
        onclick: () =>
          ask(
            ['Close session ', quoted(which), '?'],
            [
              'Its calls are cancelled, and its client',
              session.client && [' ', quoted(short(session.client, 60))],
              ' can make no more calls in it.',
            ],
            { yes: 'Close the session', no: 'Keep it open' },
            () =>
              attempt(
                () => post(['sessions', session.id, 'close']),
                () => 'The session is closed.',
              ),
          ),
      },
      'Close',
    ),
  );
}
