/** The files of the sandbox, over WASI. */

import { NotFound, PermissionDenied, ToolError } from './errors.js';

const CHUNK = 1024 * 1024;
const FOLLOW = { symlinkFollow: true };
const REASONS = {
  'no-entry': 'no such file or directory',
  'not-directory': 'is not a directory',
  'is-directory': 'is a directory',
  // Of a descriptor that was just opened: only a directory can be neither read nor written.
  'bad-descriptor': 'is a directory',
  'not-empty': 'the directory is not empty',
  exist: 'exists already',
  quota: 'the limit of the workspace is reached',
  'insufficient-space': 'no space is left',
};
const DENIED = ['access', 'not-permitted', 'read-only'];

/** The workspace of a call. */
export class Workspace {
  #preopens;
  // A call has few handles, and an instance runs one call.
  #root;

  constructor(preopens) {
    this.#preopens = preopens;
  }

  /** Forgets the directory of the build, which no call has. */
  forget() {
    this.#root = undefined;
  }

  read(path) {
    return this.#with(path, {}, { read: true }, (file) => {
      const parts = [];
      let length = 0;
      for (let isEnd = false; !isEnd; ) {
        const [data, end] = file.read(CHUNK, length);
        parts.push(data);
        length += data.length;
        isEnd = end || data.length === 0;
      }
      return parts.length === 1 ? parts[0] : joined(parts, length);
    });
  }

  write(path, data) {
    return this.#with(path, { create: true, truncate: true }, { write: true }, (file) => {
      for (let at = 0; at < data.length; ) at += file.write(data.subarray(at, at + CHUNK), at);
    });
  }

  list(path) {
    return this.#with(path, { directory: true }, { read: true }, (directory) => {
      return using(directory.readDirectory(), (entries) => {
        const names = [];
        for (let entry; (entry = entries.readDirectoryEntry()); ) {
          names.push({ name: entry.name, type: kind(entry.type) });
        }
        return names;
      });
    });
  }

  stat(path) {
    return this.#at(path, (root) => {
      const { type, size, dataModificationTimestamp: time } = root.statAt(FOLLOW, path);
      const modified = time ? new Date(time.seconds * 1000 + time.nanoseconds / 1e6) : null;
      return { type: kind(type), size, modified };
    });
  }

  createDirectory(path) {
    this.#at(path, (root) => root.createDirectoryAt(path));
  }

  remove(path) {
    this.#at(path, (root) => {
      const { type } = root.statAt({}, path);
      if (type === 'directory') root.removeDirectoryAt(path);
      else root.unlinkFileAt(path);
    });
  }

  rename(from, to) {
    this.#at(from, (root) => root.renameAt(from, root, to));
  }

  /** Opens a file, and closes it afterwards. */
  #with(path, open, flags, use) {
    return this.#at(path, (root) => using(root.openAt(FOLLOW, path, open, flags), use));
  }

  #at(path, use) {
    this.#root ??= this.#preopens()[0]?.[0];
    if (!this.#root) throw new PermissionDenied(`${path}: a tool of class none has no files`);
    try {
      return use(this.#root);
    } catch (thrown) {
      throw fileError(thrown, path);
    }
  }
}

/** Uses a handle of the host, and releases it. */
function using(handle, use) {
  try {
    return use(handle);
  } finally {
    handle[Symbol.dispose]?.();
  }
}

function fileError(thrown, path) {
  if (thrown instanceof ToolError) return thrown;
  const code = String(thrown?.payload ?? thrown?.message ?? thrown);
  if (code === 'no-entry') return new NotFound(`${path}: ${REASONS[code]}`);
  if (DENIED.includes(code)) return new PermissionDenied(`${path}: the operation is not permitted`);
  return new ToolError(`${path}: ${REASONS[code] ?? code}`);
}

function kind(type) {
  return { 'regular-file': 'file', directory: 'directory' }[type] ?? 'other';
}

function joined(parts, length) {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
