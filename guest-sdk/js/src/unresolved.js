/** Explains an import that names no module, with the remedy. */

import fs from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';

const INSTEAD = {
  fs: 'use `files` of palisade-guest',
  'fs/promises': 'use `files` of palisade-guest',
  child_process: 'there are no other processes in the sandbox',
  worker_threads: 'there are no threads in the sandbox',
  net: 'there is no network in the sandbox',
  http: 'there is no network in the sandbox',
  https: 'there is no network in the sandbox',
};
const BROWSER = 'only packages that also run in a browser work there';
// The name of a package with its scope. A relative, absolute or private name has none.
const PACKAGE = /^((?:@[\w.-]+\/)?[\w][\w.-]*)(?:\/|$)/;

/**
 * Returns the bundler's message about an import, with the remedy. The message comes after the
 * bundler has looked for a package, and for a replacement in the importing package.
 *
 * @param {{ text: string, notes?: { text: string }[] }} message
 * @param {string} importer The importing file.
 */
export function explained({ text, notes = [] }, importer) {
  const name = /^Could not resolve "(.+)"$/.exec(text)?.[1];
  if (name === undefined) return text;
  const bare = name.replace(/^node:/, '');
  if (bare !== name || builtinModules.includes(name)) {
    return `\`${name}\` does not exist in the sandbox: ${INSTEAD[bare] ?? BROWSER}`;
  }
  const wanted = PACKAGE.exec(name)?.[1];
  if (wanted !== undefined && !isInstalled(wanted, importer)) {
    return `the package \`${wanted}\` is not installed: run \`npm install ${wanted}\``;
  }
  // An import that stays in the bundle is no remedy: the sandbox has no modules beside it.
  const reason = notes.find((note) => !note.text.startsWith('You can mark the path'))?.text;
  return reason === undefined ? text : `${text}: ${reason.replace(/:$/, '')}`;
}

function isInstalled(name, importer) {
  for (let at = path.dirname(path.resolve(importer)); ; at = path.dirname(at)) {
    if (fs.existsSync(path.join(at, 'node_modules', name))) return true;
    if (at === path.dirname(at)) return false;
  }
}
