/** Builds plugins. Runs on the author's machine only, never inside of the sandbox. */

import fs from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundle, projectOf } from './bundle.js';
import { located } from './positions.js';
import { BuildError, needed } from './refusal.js';

export { BuildError } from './refusal.js';

const WIT = fileURLToPath(new URL('../wit', import.meta.url));
/** A place of the bundle as Node shows it. */
const PLACE = /(?:file:\/\/)?[^\s()]*\/plugin\.mjs:(\d+)(?::(\d+))?/g;

/** Returns the definitions of the tools, by loading the module in Node. */
export async function definitions(source) {
  const { code, lines } = await bundle(source, 'node');
  const directory = await fs.mkdtemp(path.join(path.dirname(path.resolve(source)), '.palisade-'));
  try {
    const file = path.join(directory, 'plugin.mjs');
    await fs.writeFile(file, code);
    const { tool } = await import(pathToFileURL(file));
    return tool.definitions();
  } catch (error) {
    const name = path.relative(await projectOf(source), path.resolve(source));
    throw new BuildError(unloadable(name, error, lines));
  } finally {
    await fs.rm(directory, { recursive: true });
  }
}

/** Says why a module cannot be loaded, with the places in the author's sources. */
function unloadable(name, error, lines) {
  const frames = /^ +at .*\/plugin\.mjs:.*/gm;
  const stack = error?.stack?.match(frames) ?? [];
  const places = stack.map((frame) => located(frame, lines, PLACE));
  const own = places.filter((place) => !/\bpalisade-(guest\/|entry\.js)/.test(place));
  // The bundle has its own copy of the class.
  if (error?.constructor?.name !== 'DefinitionError') {
    return [`${name} cannot be loaded: ${error}`, ...own].join('\n');
  }
  const at = /([^\s()]+:\d+)\)?$/.exec(own[0] ?? '')?.[1];
  return `${at ?? name}: ${error.message}`;
}

/** Builds a plugin, and returns its size and its definitions. */
export async function build(source, output, { minify = false } = {}) {
  const described = await definitions(source);
  const { code, lines, inputs } = await bundle(source, 'sandbox', minify);
  const { componentize } = await needed('componentize-qjs');
  const options = { witPath: WIT, world: 'plugin', jsSource: code, sync: true };
  const made = await componentize(options).catch((error) => {
    // The engine's own words for its steps say nothing about the source.
    const reason = located(error.message, lines).replace(/^(?::? ?Failed to [^:]+: )+/, '').trim();
    throw new BuildError(`the plugin cannot be loaded in the sandbox's engine: ${reason}`);
  });
  await fs.mkdir(path.dirname(path.resolve(output)), { recursive: true });
  await fs.writeFile(output, made.component);
  return { size: made.component.length, definitions: described, packages: packagesOf(inputs) };
}

function packagesOf(inputs) {
  const last = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/;
  const names = inputs.map((file) => last.exec(file)?.[1]);
  return [...new Set(names.filter((name) => name && name !== 'palisade-guest'))].sort();
}
