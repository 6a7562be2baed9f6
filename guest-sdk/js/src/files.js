/** Files of the workspace, by a small synchronous API. Paths are relative to the workspace. */

import { ToolError } from './errors.js';

let backend = {
  get() {
    throw new ToolError('there is no workspace here: a test uses `call` of palisade-guest/testing');
  },
};

/** Sets what stands behind the functions: the sandbox, or a directory of a test. */
export function useFiles(other) {
  const earlier = backend;
  backend = { get: () => other };
  return () => {
    backend = earlier;
  };
}

/** Files of the workspace. Every function throws `NotFound`, `PermissionDenied` or `ToolError`. */
export const files = {
  /** Reads a file as UTF-8. Throws if it is other data. */
  readText: (path) => decode(backend.get().read(path), path),
  /** Reads a file as bytes. */
  readBytes: (path) => backend.get().read(path),
  /** Writes a file, in place of an existing one. */
  writeText: (path, text) => backend.get().write(path, new TextEncoder().encode(text)),
  /** Writes a file, in place of an existing one. */
  writeBytes: (path, data) => backend.get().write(path, data),
  /** Lists a directory, by name: `[{ name, type: 'file' | 'directory' | 'other' }]`. */
  list: (path = '.') => backend.get().list(path).sort((a, b) => (a.name < b.name ? -1 : 1)),
  /** Returns `{ type, size, modified }`; `modified` is a `Date` or null. */
  stat: (path) => backend.get().stat(path),
  /** True if there is something at the path. */
  exists(path) {
    try {
      backend.get().stat(path);
      return true;
    } catch (error) {
      if (error?.kind === 'not-found') return false;
      throw error;
    }
  },
  /** Creates a directory. With `{ recursive: true }` also its parents, and none may be new. */
  createDirectory(path, { recursive = false } = {}) {
    if (!recursive) return backend.get().createDirectory(path);
    const parts = path.split('/').filter((part) => part !== '' && part !== '.');
    parts.forEach((_, at) => {
      const parent = parts.slice(0, at + 1).join('/');
      if (!files.exists(parent)) backend.get().createDirectory(parent);
    });
  },
  /** Removes a file or an empty directory. */
  remove: (path) => backend.get().remove(path),
  /** Renames a file or a directory. */
  rename: (from, to) => backend.get().rename(from, to),
  /**
   * Returns the files below a directory, by their paths, at any depth. Links, directories that the
   * tool may not read, and what has a name of `skip` are left out.
   */
  walk: (path = '.', { skip = [] } = {}) => {
    // The characters of a text would be names.
    if (typeof skip === 'string') throw new TypeError("`skip` is a list of names, such as ['.git']");
    return [...walk(path, files.list(path), new Set(skip))];
  },
};

function* walk(directory, entries, skip) {
  for (const { name, type } of entries) {
    const path = directory === '.' || directory === '' ? name : `${directory}/${name}`;
    if (skip.has(name)) continue;
    if (type === 'directory') yield* walk(path, readable(path), skip);
    else if (type === 'file') yield path;
  }
}

/** Returns the entries of a directory, and none of one that the tool may not read. */
function readable(path) {
  try {
    return files.list(path);
  } catch (error) {
    if (error?.kind === 'permission-denied') return [];
    throw error;
  }
}

function decode(bytes, path) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ToolError(`${path}: is no text in UTF-8`);
  }
}
