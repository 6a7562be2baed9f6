// Places of the page, as the fragment of its address: `#/history?tool=read_file`, `#/call/17`.

/** Takes a fragment apart: `{name, id, parameters}`. */
export function parse(fragment) {
  const [path, query = ''] = fragment.replace(/^#\/?/, '').split('?', 2);
  const [name = '', ...rest] = path.split('/');
  let id = rest.join('/');
  try {
    id = decodeURIComponent(id);
  } catch {
    // A half escape is part of a name that somebody typed.
  }
  return { name: name || 'now', id, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a place. Parameters without a value are left out. */
export function place(name, id = '', parameters = {}) {
  const kept = Object.entries(parameters).filter(([, value]) => value);
  const query = kept.length > 0 ? `?${new URLSearchParams(kept)}` : '';
  return `#/${name}${id === '' ? '' : `/${encodeURIComponent(id)}`}${query}`;
}

/** The code of a sign-in link, `#login=CODE`. */
export function loginCode(fragment) {
  return /^#login=(.+)$/.exec(fragment)?.[1] ?? null;
}
