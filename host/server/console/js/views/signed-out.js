// The page for people who are not signed in: how to get a link.

import { programUrl } from '../api.js';
import { h } from '../dom.js';
import { asSentence } from '../text.js';

/**
 * Makes the page. `error` is why a link did not work, and `left` is true after a sign-out.
 */
export function signedOut({ error = null, left = false }) {
  return {
    title: title(error, left),
    content: [
      why(error, left),
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
            'Run ',
            h('code', {}, `palisade console ${new URL(programUrl('')).origin}`),
            ' on the machine of the server, as the user who runs it. It prints a link.',
          ),
          h(
            'li',
            {},
            'The server prints one, too, when it starts: look at the terminal or the log of ',
            h('code', {}, 'palisade serve'),
            '.',
          ),
        ),
        h(
          'p',
          {},
          'Each link works once, within ten minutes. It signs this browser in for a day at most, ',
          'or until you sign out.',
        ),
      ),
    ],
  };
}

function title(error, left) {
  if (error) return 'The link does not work';
  return left ? 'Signed out' : 'Not signed in';
}

function why(error, left) {
  if (error) {
    return h(
      'p',
      { class: 'problem', role: 'alert' },
      h('strong', {}, 'This link did not sign you in. '),
      asSentence(error.message),
    );
  }
  if (left) return h('p', {}, 'This browser is signed out, in all tabs.');
  return h('p', {}, 'This page needs a sign-in link, which the server gives out.');
}

/** The page for a link that did not work, in a browser that is signed in already. */
export function signedInAlready() {
  return {
    title: 'You are signed in',
    content: [
      h(
        'p',
        {},
        'This link does not work any more. You need none, because this browser is signed in ',
        'already.',
      ),
      h('p', {}, h('a', { class: 'button', href: '#/now' }, 'Open the console')),
    ],
  };
}
