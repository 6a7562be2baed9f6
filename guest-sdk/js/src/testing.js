/** Tests tools without a sandbox, under `node --test` or any other runner. */

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Context } from './context.js';
import { PermissionDenied, ToolError, fromThrown } from './errors.js';
import { useFiles } from './files.js';
import { Directory } from './native-files.js';
import { stringify } from './output.js';
import { argumentsOf } from './tool.js';

/** Stands for the host, and records what a tool sends to it. */
export class Recorder {
  logs = [];
  progress_ = [];
  emitted = [];
  #polls = 0;
  #cancelAfter;

  constructor(cancelAfter = Infinity) {
    this.#cancelAfter = cancelAfter;
  }

  log(level, message) {
    this.logs.push([level, message]);
  }

  progress(done, total, message) {
    this.progress_.push([done, total, message]);
  }

  emit(chunk) {
    this.emitted.push(chunk);
  }

  cancelled() {
    this.#polls += 1;
    return this.#polls > this.#cancelAfter;
  }
}

/**
 * Calls a tool as the host does, in a workspace of its own. A tool of class `none` sees no files,
 * and a tool of class `read` must leave the workspace as it was.
 *
 * Throws a `ToolError` if the tool failed; an exception of the tool is its `cause`.
 */
export function call(tool, input = {}, options = {}) {
  const { files = {}, workspace, cancelAfter, ...properties } = options;
  const record = new Recorder(cancelAfter);
  const root = workspace ?? fs.mkdtempSync(path.join(os.tmpdir(), 'workspace-'));
  try {
    for (const [name, content] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
      fs.writeFileSync(path.join(root, name), content);
    }
    return run(tool, input, new Directory(root), record, properties);
  } finally {
    if (workspace === undefined) fs.rmSync(root, { recursive: true });
  }
}

/** Returns a context for a direct call of a tool. */
export function testContext(record = new Recorder(), properties = {}) {
  const call = { callId: 'call_1', sessionId: null, turnId: null, remainingMs: 60_000, context: '', metadata: '' };
  return new Context({ ...call, ...properties }, record);
}

/** Returns what the host reads when it loads the plugin, with parsed schemas. */
export function definition(tool) {
  const { inputSchema, outputSchema, metadata, ...rest } = tool.definition;
  return {
    ...rest,
    inputSchema: JSON.parse(inputSchema),
    outputSchema: outputSchema && JSON.parse(outputSchema),
    metadata: JSON.parse(metadata || '{}'),
  };
}

function run(tool, input, directory, record, properties) {
  const { sideEffects } = tool.definition;
  const before = directory.snapshot();
  const restore = useFiles(sideEffects === 'none' ? new NoFiles() : directory);
  let output;
  try {
    const values = argumentsOf(typeof input === 'string' ? input : stringify(input));
    output = tool.call(values, testContext(record, properties));
  } catch (thrown) {
    throw thrown instanceof ToolError ? thrown : Object.assign(fromThrown(thrown), { cause: thrown });
  } finally {
    restore();
  }
  const after = directory.snapshot();
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = [...names].filter((name) => !before[name]?.equals(after[name] ?? Buffer.from('\0none')));
  if (sideEffects === 'read' && changed.length > 0) {
    throw new PermissionDenied(`a tool of class \`read\` changed ${changed.join(', ')}; the sandbox refuses it`);
  }
  return {
    output,
    content: output.content,
    text: output.text,
    json: output.json,
    success: output.success,
    files: after,
    logs: record.logs,
    progress: record.progress_,
    emitted: record.emitted,
  };
}

/** The files of a tool of class `none`. */
class NoFiles {
  constructor() {
    const refuse = (name) => {
      throw new PermissionDenied(`${name}: a tool of class none has no files`);
    };
    const all = ['read', 'write', 'list', 'stat', 'createDirectory', 'remove', 'rename'];
    for (const name of all) this[name] = refuse;
  }
}
