#!/usr/bin/env node
/** Builds plugins: `npx palisade-guest build -o out.wasm`. */

import fs from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { BuildError, build, definitions } from '../src/build.js';

const USAGE = `Usage: palisade-guest build [SRC] [-o OUT.wasm] [--minify]
       palisade-guest definitions [SRC]

build        Make a plugin of a JavaScript or TypeScript module
definitions  Print the definitions of its tools as JSON

Without SRC, the module is the \`main\` of ./package.json.`;

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      output: { type: 'string', short: 'o' },
      minify: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const [command, named] = positionals;
  if (values.help || !['build', 'definitions'].includes(command)) {
    (values.help ? console.log : console.error)(USAGE);
    return values.help ? 0 : 2;
  }
  const source = named ?? (await mainModule());
  if (command === 'definitions') {
    const plain = (text) => (text ? JSON.parse(text) : undefined);
    const described = await definitions(source);
    const shown = described.map((d) => ({ ...d, inputSchema: plain(d.inputSchema), outputSchema: plain(d.outputSchema), metadata: plain(d.metadata) }));
    console.log(JSON.stringify(shown, null, 2));
    return 0;
  }
  const begun = Date.now();
  const output = values.output ?? `${path.parse(source).name}.wasm`;
  const built = await build(source, output, values);
  const tools = built.definitions.map(({ name }) => name).join(', ');
  const packages = built.packages.join(', ') || 'none';
  console.log(`${output}: ${(built.size / 1e6).toFixed(1)} MB in ${((Date.now() - begun) / 1000).toFixed(0)} s; tools: ${tools}; packages: ${packages}`);
  return 0;
}

/** Returns the module that the project names, as `palisade build` does. */
async function mainModule() {
  const text = await fs.readFile('package.json', 'utf8').catch(() => {
    throw new BuildError('there is no package.json here: name the module with the tools');
  });
  const { main } = parsed(text);
  if (typeof main === 'string') return main;
  throw new BuildError(
    'package.json has no `main`: the module with the tools, such as `src/index.js`',
  );
}

function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch (error) {
    throw new BuildError(`package.json is not JSON: ${error.message}`);
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  const isKnown = error instanceof BuildError || error.code?.startsWith('ERR_PARSE_ARGS');
  console.error(`palisade-guest: ${isKnown ? error.message : error.stack}`);
  process.exitCode = isKnown ? 1 : 70;
}
