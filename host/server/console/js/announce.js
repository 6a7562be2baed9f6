// Tells people who do not see the page what happened on it.

import { byId } from './dom.js';
import { visible } from './text.js';

/** Says it as soon as the reader has finished the current sentence; `now` interrupts. */
export function announce(text, now = false) {
  // While a dialog is open, the rest of the page is silent.
  const dialog = document.querySelector('dialog[open] [data-says]');
  const region = dialog ?? byId(now ? 'assertive' : 'polite');
  region.textContent = '';
  // A region that gets the same text again says it only if it was empty for a moment.
  setTimeout(() => {
    region.textContent = visible(text);
  }, 50);
}
