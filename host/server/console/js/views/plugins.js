// *Plugins*: what is loaded, what it may do, and what was refused.

import { get } from '../api.js';
import { h, keyed, put } from '../dom.js';
import {
  classBadge,
  digest,
  facts,
  giver,
  isServer,
  lines,
  longText,
  nothing,
  quoted,
  table,
} from '../parts.js';
import { place } from '../router.js';
import { short } from '../text.js';

export const view = {
  title: () => 'Plugins',
  stale: ({ name }) => name.startsWith('plugin.'),
  load: (route, app, signal) => get(['plugins'], { signal }),
  build,
};

function build(body) {
  const refused = h('section', { class: 'refused' });
  const loaded = h('div', { class: 'plugins' });
  put(body, refused, h('section', {}, h('h2', {}, 'Loaded'), loaded));
  return ({ items, rejected }) => {
    refused.hidden = !rejected?.length;
    keyed(
      refused,
      rejected?.length ? [{ title: 'Refused' }, ...rejected] : [],
      (item) => item.title ?? item.file,
      refusal,
    );
    if (items.length === 0) put(loaded, nothing('No plugin is loaded.'));
    else keyed(loaded, items, (plugin) => `${plugin.name}/${plugin.file}`, card);
  };
}

function refusal({ title, file, reason }) {
  if (title) return h('h2', {}, title);
  return h(
    'article',
    { class: 'card refusal' },
    h('h3', {}, h('bdi', { class: 'path' }, short(file, 300))),
    longText(reason, { label: 'Reason', limit: 1000 }),
  );
}

function heading({ name, file }) {
  if (file !== null) return quoted(short(name, 100), 'name');
  return isServer(name) ? giver(name) : 'Part of the program';
}

function card(plugin) {
  const server = isServer(plugin.name);
  const native = plugin.file === null;
  const tools = table({
    caption: 'Tools of this plugin',
    empty: 'It has no tool.',
    key: (tool) => tool.name,
    columns: [
      {
        name: 'Tool',
        class: 'main',
        cell: (tool) => [
          h(
            'a',
            { href: place('history', '', { tool: tool.name }) },
            quoted(short(tool.name, 100), 'name'),
          ),
          tool.title && h('span', { class: 'title' }, short(tool.title, 120)),
        ],
      },
      { name: 'Class', cell: (tool) => classBadge(tool.class) },
      { name: server ? 'Its process may use' : 'Its sandbox holds', cell: (tool) => tool.sandbox },
      {
        name: 'Its own description',
        class: 'wide',
        cell: (tool) => longText(tool.description, { limit: 400, label: 'Description' }),
      },
    ],
  });
  tools.update(plugin.tools);
  return h(
    'article',
    { class: 'card plugin' },
    h('h3', {}, heading(plugin)),
    facts([
      ['File', !native && h('bdi', { class: 'path' }, short(plugin.file, 300))],
      ['Digest', digest(plugin.digest)],
      ['Granted', plugin.grants.length > 0 && lines(plugin.grants)],
    ]),
    tools.element,
    plugin.imports.length > 0 &&
      h(
        'details',
        {},
        h('summary', {}, `What it asks the host for (${plugin.imports.length})`),
        h(
          'dl',
          { class: 'imports' },
          plugin.imports.map(({ name, gets }) =>
            h('div', {}, h('dt', {}, h('code', {}, name)), h('dd', {}, gets)),
          ),
        ),
      ),
  );
}
