/** The refusals of a build, and the packages that it needs. */

/** A plugin that cannot be built, with the reason and what to do. */
export class BuildError extends Error {}

/** The packages that the build runs, with the versions to install. */
const PACKAGES = { 'componentize-qjs': 'componentize-qjs@0.4.5', esbuild: 'esbuild' };

/** Loads a package that the build runs. */
export async function needed(name) {
  return import(name).catch((error) => {
    const wanted = PACKAGES[name];
    const [reason] = error.message.split('\n');
    throw new BuildError(`${wanted} cannot be loaded: run \`npm install ${wanted}\` (${reason})`);
  });
}
