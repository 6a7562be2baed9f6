/** Bundles the author's modules and their packages. Runs on the author's machine only. */

import fs from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { linesOf } from './lines.js';
import { BuildError, needed } from './refusal.js';
import { explained } from './unresolved.js';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const SANDBOX = /^(palisade:tool|wasi:[a-z-]+)\//;

// The text of `positions.js` that the lines of the bundle replace.
const LINES = '"@palisade-lines@"';

/**
 * Bundles the author's modules with the entry, for Node or for the sandbox.
 *
 * Returns the code, its lines for `located`, and the names of the bundled modules.
 */
export async function bundle(source, platform, minify = false) {
  await fs.access(source).catch(() => {
    throw new BuildError(`${source} does not exist`);
  });
  const { build: esbuild } = await needed('esbuild');
  const directory = await projectOf(source);
  const made = await esbuild({
    stdin: {
      contents: entry(path.resolve(source)),
      resolveDir: path.dirname(path.resolve(source)),
      sourcefile: 'palisade-entry.js',
    },
    // The paths in messages and in the bundle are relative to the project, so that the bundle does
    // not depend on the place of the project.
    absWorkingDir: directory,
    outfile: path.join(directory, 'plugin.js'),
    bundle: true,
    write: false,
    metafile: true,
    sourcemap: 'external',
    sourcesContent: false,
    format: 'esm',
    // Of the variants of a package, that for a browser needs no module of Node. The bundler reads
    // the field `browser` for this platform only.
    platform: 'browser',
    define: { 'process.env.NODE_ENV': '"production"' },
    target: 'es2023',
    minify,
    keepNames: minify,
    logLevel: 'silent',
    plugins: [resolver(platform)],
  }).catch((error) => {
    throw new BuildError((error.errors ?? [error]).map((it) => readable(it, directory)).join('\n'));
  });
  const [map, { text }] = made.outputFiles;
  const lines = linesOf(JSON.parse(map.text));
  // A minified bundle is to be small.
  const code = minify ? text : text.replace(LINES, () => JSON.stringify(lines));
  return { code, lines, inputs: Object.keys(made.metafile.inputs) };
}

/** Returns the directory of the nearest `package.json`, or else that of the source. */
export async function projectOf(source) {
  const beside = path.dirname(path.resolve(source));
  for (let at = beside; ; at = path.dirname(at)) {
    const isProject = await fs.access(path.join(at, 'package.json')).then(() => true, () => false);
    if (isProject) return at;
    if (at === path.dirname(at)) return beside;
  }
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
const NOTHING = `
  export const log = () => {}, getDirectories = () => [];
  export const getRandomBytes = (length) => new Uint8Array(length);
`;

/** Resolves the modules of this package and of the sandbox. */
function resolver(platform) {
  return {
    name: 'palisade',
    setup(builder) {
      const isSandbox = platform === 'sandbox';
      builder.onResolve({ filter: SANDBOX }, ({ path: name }) =>
        isSandbox ? { path: name, external: true } : { path: name, namespace: 'nothing' },
      );
      builder.onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: NOTHING }));
      builder.onResolve({ filter: /^palisade-guest\/prepare$/ }, () => ({
        path: 'prepare',
        namespace: 'prepare',
      }));
      builder.onLoad({ filter: /.*/, namespace: 'prepare' }, () => ({
        contents: PREPARE,
        resolveDir: ROOT,
      }));
      // One copy, also for an author who has none beside the source. Its place is not in the names.
      builder.onResolve({ filter: /^palisade-guest(\/component)?$/ }, ({ path: name }) => ({
        path: name.endsWith('component') ? 'src/component.js' : 'src/index.js',
        namespace: 'palisade-guest',
      }));
      const inside = { filter: /^\./, namespace: 'palisade-guest' };
      builder.onResolve(inside, ({ path: name, importer }) => ({
        path: path.posix.join(path.posix.dirname(importer), name),
        namespace: 'palisade-guest',
      }));
      builder.onLoad({ filter: /.*/, namespace: 'palisade-guest' }, async ({ path: name }) => ({
        contents: await fs.readFile(path.join(ROOT, name)),
        loader: 'js',
      }));
    },
  };
}

function readable({ text, message, location, notes }, directory) {
  if (!location) return text ?? message;
  const importer = path.join(directory, location.file);
  return `${location.file}:${location.line}: ${explained({ text, notes }, importer)}`;
}
