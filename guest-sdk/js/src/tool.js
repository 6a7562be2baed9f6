/** Makes tools of functions. */

import { InvalidInput, NotFound, require } from './errors.js';
import { toOutput } from './output.js';
import { Type, hasOptional, inputType } from './schema.js';

const CLASSES = ['none', 'read', 'write', 'execute', 'network'];
const OPTIONS = ['name', 'title', 'description', 'sideEffects', 'input', 'output', 'idempotent', 'timeoutMs', 'metadata', 'run'];
// Limits of the contract (`wit/types.wit`, `wit/tool.wit`).
const MAX_DESCRIPTION = 16 * 1024;
const MAX_TOOLS = 256;

const tools = new Map();

/** A tool: callable as its function, with its definition. */
export function tool(options) {
  const { name, run } = options ?? {};
  require(typeof run === 'function', 'a tool has a function `run(input, context)`');
  require(/^[a-z][a-z0-9_]{0,63}$/.test(name ?? ''), `\`${name}\` is no name of a tool: a name is lower-case letters, digits and \`_\``);
  const unknown = Object.keys(options).find((option) => !OPTIONS.includes(option));
  require(unknown === undefined, `${name}: \`${unknown}\` is no option of a tool; the options are ${OPTIONS.join(', ')}`);
  require(run.constructor.name !== 'AsyncFunction', `${name}: \`run\` is a plain function, not an \`async\` one: there is no event loop in the sandbox`);
  require(!tools.has(name), `two tools have the name \`${name}\``);
  const input = inputType(options.input, name);
  const made = Object.assign((values, context) => run(values, context), {
    toolName: name,
    definition: define(options, input),
    call: (values, context) => call(options, input, values, context),
  });
  tools.set(name, made);
  require(tools.size <= MAX_TOOLS, `a plugin offers at most ${MAX_TOOLS} tools`);
  return made;
}

/** Returns the tools of this plugin, in the order of their definition. */
export function allTools() {
  return [...tools.values()];
}

/** Returns the tool of this name. */
export function toolNamed(name) {
  const found = tools.get(name);
  if (!found) throw new NotFound(`this plugin has no tool \`${name}\``);
  return found;
}

/** Forgets the tools, for a test. */
export function forgetTools() {
  tools.clear();
}

/** Parses the input of a call. */
export function argumentsOf(text) {
  const values = JSON.parse(text || '{}');
  if (typeof values !== 'object' || values === null || Array.isArray(values)) throw new InvalidInput('', 'expected an object');
  return values;
}

function call(options, input, values, context) {
  const returned = options.run(input.read(values), context);
  const output = toOutput(returned, { isJson: options.output !== undefined });
  for (const path of context.filesModified) {
    if (!output.filesModified.includes(path)) output.filesModified.push(path);
  }
  return output;
}

/** Returns the definition in the form of the contract. */
function define(options, input) {
  const { name, title = null, sideEffects, timeoutMs = null } = options;
  const description = (options.description ?? '').trim();
  require(description !== '', `${name} has no description: write one for the model that decides when to use the tool`);
  require(description.length <= MAX_DESCRIPTION, `${name}: the description has more than 16 KiB`);
  require(!/[\0-\x08\x0b-\x1f\x7f-\x9f]/.test(description), `${name}: the description has a control character`);
  require(CLASSES.includes(sideEffects), `${name}: \`sideEffects\` is one of ${CLASSES.join(', ')}, not ${sideEffects}`);
  const metadata = { ...options.metadata };
  // Only types of this SDK tell which members may be absent: a schema by hand may mean null.
  if (options.input === undefined || !('type' in options.input) || options.input instanceof Type) {
    if (hasOptional(input.schema)) metadata['null-is-absent'] ??= true;
  }
  return {
    name,
    title,
    description,
    inputSchema: JSON.stringify(input.schema),
    outputSchema: options.output === undefined ? null : JSON.stringify(outputSchema(options.output, name)),
    sideEffects,
    idempotent: options.idempotent === true,
    timeoutMs,
    metadata: Object.keys(metadata).length > 0 ? JSON.stringify(metadata) : '',
  };
}

function outputSchema(output, name) {
  if (output instanceof Type) return output.schema;
  return inputType(output, name).schema;
}
