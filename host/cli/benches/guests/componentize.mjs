// Makes a component of a module: `node componentize.mjs SOURCE WIT OUT`, beside the packages that it needs.
import { componentize } from '@bytecodealliance/componentize-js';
import { readFile, writeFile } from 'node:fs/promises';

const [source, witPath, out] = process.argv.slice(2);
const { component } = await componentize(await readFile(source, 'utf8'), {
  witPath,
  worldName: 'plugin',
  // The features that a tool does not use here, and that no host of `palisade:tool` gives.
  disableFeatures: ['http', 'fetch-event'],
});
await writeFile(out, component);
