// The page for people who are not signed in: how to get a link.

import { h } from '../dom.js';

/** Makes the page. `error` is why a link did not work, or `null` if there was none. */
export function signedOut(error) {
  const why = error
    ? h(
        'p',
        { class: 'problem', role: 'alert' },
        h('strong', {}, 'This link did not sign you in. '),
        error.message,
      )
    : h('p', {}, 'This page needs a sign-in link, which the server gives out.');
  return {
    title: error ? 'The link does not work' : 'Not signed in',
    content: [
      why,
      h(
        'section',
        {},
        h('h2', {}, 'How to get a new link'),
        h(
          'ul',
          { class: 'points' },
          h(
            'li',
            {},
            'The server prints a link when it starts: look at the terminal or the log of ',
            h('code', {}, 'palisade serve --http'),
            '.',
          ),
          h('li', {}, 'Restarting the server makes a new one.'),
        ),
        h(
          'p',
          {},
          'Each link works once. It signs this browser in until the server stops or you delete ',
          'its cookies.',
        ),
      ),
    ],
  };
}
