// The text of *Now* while the journal knows no call: the way to the first call.

import { programUrl } from '../api.js';
import { h } from '../dom.js';

/** Makes the section. */
export function firstSteps() {
  const server = programUrl('mcp');
  const code = (text) => h('code', {}, text);
  return h(
    'section',
    { 'aria-labelledby': 'first-steps' },
    h('h2', { id: 'first-steps' }, 'How a first call comes here'),
    h(
      'ol',
      { class: 'steps' },
      h(
        'li',
        {},
        'Connect a client to ',
        code(server),
        '. ',
        code(`palisade mcp config --client CLIENT --http ${server}`),
        ' prints its configuration; CLIENT is, for example, ',
        code('claude-code'),
        ', ',
        code('cursor'),
        ' or ',
        code('vscode'),
        '. A client that has started this server itself is connected already.',
      ),
      h(
        'li',
        {},
        'Give it the token of the clients: the one that the server was started with (',
        code('--token-file'),
        ' or ',
        code('PALISADE_SERVE_TOKEN'),
        '), or else the one that the server made. That one is in the terminal of ',
        code('palisade serve'),
        ' and in a private file, and the command above names the file.',
      ),
      h(
        'li',
        {},
        'Let it change a file of the workspace. The call waits here until you have seen the ',
        'change and answered.',
      ),
    ),
  );
}
