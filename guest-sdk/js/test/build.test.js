import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { BuildError, definitions } from '../src/build.js';

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'build-'));
after(() => fs.rmSync(directory, { recursive: true }));
const esbuild = await import('esbuild').then(() => false, () => 'esbuild is not installed: run `npm install`');

function source(text, name = 'plugin.js') {
  const file = path.join(directory, name);
  fs.writeFileSync(file, text);
  return file;
}

const refusal = async (text, message) =>
  assert.rejects(definitions(source(text)), (error) => error instanceof BuildError && message.test(error.message));

const HEAD = "import { t, tool } from 'palisade-guest';\n";

test('definitions are read before the component is made', { skip: esbuild }, async () => {
  const made = await definitions(source(`${HEAD}tool({ name: 'a', description: 'A.', sideEffects: 'none', run: () => console.log(Math.random()) });`));
  assert.deepEqual(made.map(({ name }) => name), ['a']);
});

test('sources may be TypeScript', { skip: esbuild }, async () => {
  const text = `${HEAD}const name: string = 'b';\ntool({ name, description: 'B.', sideEffects: 'none', run: (): string => name });`;
  const made = await definitions(source(text, 'plugin.ts'));
  assert.equal(made[0].name, 'b');
});

test('faults are named', { skip: esbuild }, async () => {
  await refusal('const x = 1;', /no tool is defined/);
  await refusal(`${HEAD}tool({ name: 'a', sideEffects: 'none', run() {} });`, /a has no description/);
  await refusal("import fs from 'node:fs';", /plugin\.js.*`node:fs` does not exist in the sandbox: use `files`/);
  await refusal("import { spawn } from 'child_process';", /no other processes/);
  await refusal("import x from 'absent-package';", /plugin\.js:1.*absent-package/);
  await refusal('const = 1;', /plugin\.js:1/);
  await assert.rejects(definitions(path.join(directory, 'absent.js')), /does not exist/);
});
