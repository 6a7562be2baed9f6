import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'command-'));
after(() => fs.rmSync(directory, { recursive: true }));
const absent = 'esbuild is not installed: run `npm install`';
const esbuild = await import('esbuild').then(() => false, () => absent);
const program = fileURLToPath(new URL('../bin/palisade-guest.js', import.meta.url));

function run(...words) {
  const ran = spawnSync(process.execPath, [program, ...words], { cwd: directory });
  return { code: ran.status, output: String(ran.stdout), error: String(ran.stderr) };
}

function write(name, text) {
  const file = path.join(directory, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}

test('command takes the main module of the project', { skip: esbuild }, () => {
  const options = "name: 'a', description: 'A.', sideEffects: 'none', run: (): string => ''";
  write('src/index.ts', `import { tool } from 'palisade-guest';\ntool({ ${options} });`);
  write('package.json', '{"main": "src/index.ts"}');
  const ran = run('definitions');
  assert.equal(ran.code, 0, ran.error);
  assert.equal(JSON.parse(ran.output)[0].name, 'a');
});

test('project without a main module is refused with the way out', () => {
  write('package.json', '{}');
  const { code, error } = run('build');
  assert.equal(code, 1);
  assert.match(error, /package\.json has no `main`.*such as `src\/index\.js`/);
  write('package.json', '{');
  assert.match(run('build').error, /package\.json is not JSON/);
  fs.rmSync(path.join(directory, 'package.json'));
  assert.match(run('build').error, /no package\.json.*name the module/);
});

test('unknown command is refused with the usage', () => {
  const { code, error } = run('make');
  assert.equal(code, 2);
  assert.match(error, /^Usage: palisade-guest build \[SRC\]/);
});
