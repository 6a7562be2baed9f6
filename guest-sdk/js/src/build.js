/** Builds plugins. Runs on the author's machine only, never inside of the sandbox. */

import fs from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundle } from './bundle.js';
import { BuildError, needed } from './refusal.js';

export { BuildError } from './refusal.js';

const WIT = fileURLToPath(new URL('../wit', import.meta.url));

/** Returns the definitions of the tools, by loading the module in Node. */
export async function definitions(source) {
  const { code } = await bundle(source, 'node');
  const directory = await fs.mkdtemp(path.join(path.dirname(path.resolve(source)), '.palisade-'));
  try {
    const file = path.join(directory, 'plugin.mjs');
    await fs.writeFile(file, code);
    const { tool } = await import(pathToFileURL(file));
    return tool.definitions();
  } catch (error) {
    // The bundle has its own copy of the class.
    if (error?.constructor?.name === 'DefinitionError') throw new BuildError(error.message);
    throw new BuildError(`${source} cannot be loaded: ${error?.stack ?? error}`);
  } finally {
    await fs.rm(directory, { recursive: true });
  }
}

/** Builds a plugin, and returns its size and its definitions. */
export async function build(source, output, { minify = false } = {}) {
  const described = await definitions(source);
  const { code: jsSource, inputs } = await bundle(source, 'sandbox', minify);
  const { componentize } = await needed('componentize-qjs');
  const options = { witPath: WIT, world: 'plugin', jsSource, sync: true };
  const made = await componentize(options).catch((error) => {
    throw new BuildError(`the plugin cannot be loaded in the sandbox's engine: ${error.message}`);
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
