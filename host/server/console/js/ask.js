// A small dialog for "really?", before something ends that cannot be begun again.

import { byId, h, put } from './dom.js';

/** Asks, and runs `act` if the answer is yes. The focus is on "no". */
export function ask(title, text, { yes, no: keep }, act) {
  const dialog = byId('ask');
  const no = h('button', { type: 'button', onclick: () => dialog.close() }, keep);
  put(
    dialog,
    h('h2', { id: 'ask-title' }, title),
    h('p', {}, text),
    h(
      'div',
      { class: 'buttons' },
      no,
      h(
        'button',
        {
          type: 'button',
          class: 'danger',
          onclick: () => {
            dialog.close();
            act();
          },
        },
        yes,
      ),
    ),
  );
  dialog.showModal();
  no.focus();
}
