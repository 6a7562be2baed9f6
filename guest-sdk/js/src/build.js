/** Builds plugins. Runs on the author's machine only, never inside of the sandbox. */

import fs from 'node:fs/promises';
import { builtinModules } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DefinitionError } from './errors.js';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const SANDBOX = /^(palisade:tool|wasi:[a-z-]+)\//;
const INSTEAD = {
  fs: 'use `files` of palisade-guest',
  'fs/promises': 'use `files` of palisade-guest',
  child_process: 'there are no other processes in the sandbox',
  worker_threads: 'there are no threads in the sandbox',
  net: 'there is no network in the sandbox',
  http: 'there is no network in the sandbox',
  https: 'there is no network in the sandbox',
};

/** A plugin that cannot be built, with the reason and what to do. */
export class BuildError extends Error {}

/** Returns the definitions of the tools, by loading the module in Node. */
export async function definitions(source) {
  const { component } = await bundle(source, 'node');
  const directory = await fs.mkdtemp(path.join(path.dirname(path.resolve(source)), '.palisade-'));
  try {
    const file = path.join(directory, 'plugin.mjs');
    await fs.writeFile(file, component);
    const { tool } = await import(pathToFileURL(file));
    return tool.definitions();
  } catch (error) {
    if (error instanceof DefinitionError || error.constructor.name === 'DefinitionError') throw new BuildError(error.message);
    throw new BuildError(`${source} cannot be loaded: ${error?.stack ?? error}`);
  } finally {
    await fs.rm(directory, { recursive: true });
  }
}

/** Builds a plugin, and returns its size and its definitions. */
export async function build(source, output, { minify = false } = {}) {
  const described = await definitions(source);
  const { component: jsSource, inputs } = await bundle(source, 'sandbox', minify);
  const { componentize } = await engine();
  const made = await componentize({ witPath: path.join(ROOT, 'wit'), world: 'plugin', jsSource, sync: true }).catch(
    (error) => {
      throw new BuildError(`the plugin cannot be loaded in the sandbox's engine: ${error.message}`);
    },
  );
  await fs.mkdir(path.dirname(path.resolve(output)), { recursive: true });
  await fs.writeFile(output, made.component);
  return { size: made.component.length, definitions: described, packages: packagesOf(inputs) };
}

/** Bundles the author's modules with the entry. */
async function bundle(source, platform, minify = false) {
  await fs.access(source).catch(() => {
    throw new BuildError(`${source} does not exist`);
  });
  const { build: esbuild } = await bundler();
  const resolveDir = path.dirname(path.resolve(source));
  const made = await esbuild({
    stdin: { contents: entry(path.resolve(source)), resolveDir, sourcefile: 'palisade-entry.js' },
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['import', 'default'],
    target: 'es2023',
    minify,
    keepNames: minify,
    logLevel: 'silent',
    plugins: [resolver(platform)],
  }).catch((error) => {
    throw new BuildError((error.errors ?? [error]).map(readable).join('\n'));
  });
  return { component: made.outputFiles[0].text, inputs: Object.keys(made.metafile.inputs) };
}

function entry(source) {
  return `
    import 'palisade-guest/prepare';
    import ${JSON.stringify(source)};
    import * as host from 'palisade:tool/host@0.1.0';
    import { serve } from 'palisade-guest/component';
    export const tool = serve(host);
  `;
}

// Imports run in order, so that this module prepares the engine before the author's modules run.
const PREPARE = `
  import * as host from 'palisade:tool/host@0.1.0';
  import * as preopens from 'wasi:filesystem/preopens@0.2.0';
  import * as random from 'wasi:random/random@0.2.0';
  import { prepare } from 'palisade-guest/component';
  prepare(host, {
    preopens: () => preopens.getDirectories(),
    randomBytes: (length) => random.getRandomBytes(length),
  });
`;
// In Node, only the definitions are read.
const NOTHING = 'export const log = () => {}, getDirectories = () => [], getRandomBytes = (n) => new Uint8Array(n);';

/** Resolves the modules of this package, of the sandbox, and those that the sandbox has not. */
function resolver(platform) {
  return {
    name: 'palisade',
    setup(builder) {
      builder.onResolve({ filter: SANDBOX }, ({ path: name }) =>
        platform === 'sandbox' ? { path: name, external: true } : { path: name, namespace: 'nothing' },
      );
      builder.onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: NOTHING }));
      builder.onResolve({ filter: /^palisade-guest\/prepare$/ }, () => ({ path: 'prepare', namespace: 'prepare' }));
      builder.onLoad({ filter: /.*/, namespace: 'prepare' }, () => ({ contents: PREPARE, resolveDir: ROOT }));
      // One copy, also for an author who has none beside the source.
      builder.onResolve({ filter: /^palisade-guest(\/component)?$/ }, ({ path: name }) => ({
        path: path.join(ROOT, 'src', name.endsWith('component') ? 'component.js' : 'index.js'),
      }));
      builder.onResolve({ filter: /.*/ }, ({ path: name, importer }) => {
        const bare = name.replace(/^node:/, '');
        if (!name.startsWith('node:') && !builtinModules.includes(bare)) return undefined;
        const advice = INSTEAD[bare] ?? 'only packages that also run in a browser work there';
        return { errors: [{ text: `\`${name}\` does not exist in the sandbox: ${advice}`, location: { file: importer } }] };
      });
    },
  };
}

function readable({ text, message, location }) {
  const place = location?.file ? `${location.file}${location.line ? `:${location.line}` : ''}: ` : '';
  return `${place}${text ?? message}`;
}

function packagesOf(inputs) {
  const names = inputs.map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(file)?.[1]);
  return [...new Set(names.filter((name) => name && name !== 'palisade-guest'))].sort();
}

async function engine() {
  return import('componentize-qjs').catch(missing('componentize-qjs@0.4.5'));
}

async function bundler() {
  return import('esbuild').catch(missing('esbuild'));
}

function missing(name) {
  return (error) => {
    throw new BuildError(`${name} cannot be loaded: run \`npm install ${name}\` (${error.message.split('\n')[0]})`);
  };
}
