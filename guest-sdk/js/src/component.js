/** The plugin inside of the sandbox: serves the contract. The build imports this module. */

import { Context } from './context.js';
import { DefinitionError, ToolError, fromThrown } from './errors.js';
import { useFiles } from './files.js';
import { defineGlobals, forgetRandomness } from './globals.js';
import { stringify } from './output.js';
import { located } from './positions.js';
import { allTools, argumentsOf, toolNamed } from './tool.js';
import { Workspace } from './sandbox-files.js';

// A longer message would be cut by the host (`wit/host.wit`).
const MAX_MESSAGE = 4 * 1024;

let workspace;

/** Prepares the engine. Runs before the author's modules. */
export function prepare(host, wasi) {
  defineGlobals((level, message) => host.log(level, located(message)), wasi.randomBytes);
  workspace = new Workspace(wasi.preopens);
  useFiles(workspace);
}

/** Returns the interface of the contract. Runs after the author's modules. */
export function serve(host) {
  forgetRandomness();
  workspace?.forget();
  if (allTools().length === 0) throw new DefinitionError('no tool is defined: call tool({ … })');
  const definitions = allTools().map((tool) => tool.definition);
  return { definitions: () => definitions, execute: (call) => execute(call, host) };
}

function execute(call, host) {
  try {
    const output = toolNamed(call.tool).call(argumentsOf(call.input), new Context(call, host));
    const { content, success, metadata, filesModified, commandExecuted } = output;
    const isEmpty = Object.keys(metadata).length === 0;
    return { content, success, metadata: isEmpty ? '' : stringify(metadata), filesModified, commandExecuted };
  } catch (thrown) {
    report(thrown, host);
    throw contractError(fromThrown(thrown));
  }
}

/** Writes the stack of an error that nobody meant to the log. */
function report(thrown, host) {
  const isMeant = thrown instanceof ToolError;
  if (isMeant && thrown.cause === undefined) return;
  const level = isMeant ? 'debug' : 'error';
  for (let error = thrown; error !== undefined; error = error?.cause) {
    const stack = error?.stack ? located(`${error}\n${error.stack}`.trimEnd()) : String(error);
    // A log has one line for each message.
    for (const line of stack.split('\n')) {
      for (const part of parts(line)) host.log(level, part);
    }
  }
}

/** Splits a line into parts of at most `MAX_MESSAGE` bytes in UTF-8. */
export function* parts(line) {
  let [part, bytes] = ['', 0];
  // By whole characters: the contract has no half of a surrogate pair.
  for (const character of line) {
    const point = character.codePointAt(0);
    const size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (bytes + size > MAX_MESSAGE) {
      yield part;
      [part, bytes] = ['', 0];
    }
    part += size === 3 && point >= 0xd800 && point < 0xe000 ? '\ufffd' : character;
    bytes += size;
  }
  if (part) yield part;
}

function contractError(error) {
  if (error.kind === 'cancelled') return { tag: 'cancelled' };
  if (error.kind === 'invalid-input') {
    return { tag: 'invalid-input', val: { field: error.field, reason: error.reason } };
  }
  return { tag: error.kind, val: error.message };
}
