/** The files of a test, over Node. */

import fs from 'node:fs';
import path from 'node:path';
import { NotFound, PermissionDenied, ToolError } from './errors.js';

const REASONS = {
  EISDIR: 'is a directory',
  ENOTDIR: 'is not a directory',
  ENOTEMPTY: 'the directory is not empty',
  EEXIST: 'exists already',
};

/** A directory of the machine as the workspace. Paths outside of it are refused. */
export class Directory {
  #root;

  constructor(root) {
    this.#root = fs.realpathSync(root);
  }

  read(name) {
    return this.#at(name, (file) => new Uint8Array(fs.readFileSync(file)));
  }

  write(name, data) {
    this.#at(name, (file) => fs.writeFileSync(file, data));
  }

  list(name) {
    return this.#at(name, (file) =>
      fs.readdirSync(file, { withFileTypes: true }).map((entry) => ({ name: entry.name, type: kind(entry) })),
    );
  }

  stat(name) {
    return this.#at(name, (file) => {
      const found = fs.statSync(file);
      return { type: kind(found), size: found.size, modified: found.mtime };
    });
  }

  createDirectory(name) {
    this.#at(name, (file) => fs.mkdirSync(file));
  }

  remove(name) {
    this.#at(name, (file) => (fs.lstatSync(file).isDirectory() ? fs.rmdirSync(file) : fs.unlinkSync(file)));
  }

  rename(from, to) {
    this.#at(from, (file) => this.#at(to, (target) => fs.renameSync(file, target)));
  }

  /** Returns the files with their content, by their relative paths. */
  snapshot() {
    const entries = fs.readdirSync(this.#root, { recursive: true, withFileTypes: true });
    const found = entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath ?? entry.path, entry.name));
    return Object.fromEntries(found.sort().map((file) => [path.relative(this.#root, file), fs.readFileSync(file)]));
  }

  #at(name, use) {
    const file = path.resolve(this.#root, name);
    if (file !== this.#root && !file.startsWith(this.#root + path.sep)) {
      throw new PermissionDenied(`${name}: the operation is not permitted`);
    }
    try {
      return use(file);
    } catch (error) {
      throw fileError(error, name);
    }
  }
}

function fileError(error, name) {
  if (error instanceof ToolError) return error;
  if (error.code === 'ENOENT') return new NotFound(`${name}: no such file or directory`);
  if (['EACCES', 'EPERM', 'EROFS'].includes(error.code)) {
    return new PermissionDenied(`${name}: the operation is not permitted`);
  }
  return new ToolError(`${name}: ${REASONS[error.code] ?? error.message}`);
}

function kind(entry) {
  return entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : 'other';
}
