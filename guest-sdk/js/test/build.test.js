import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { BuildError, build, definitions } from '../src/build.js';
import { bundle } from '../src/bundle.js';
import { located } from '../src/positions.js';

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'build-'));
after(() => fs.rmSync(directory, { recursive: true }));
const esbuild = await import('esbuild').then(() => false, () => 'esbuild is not installed: run `npm install`');

const engine = await import('componentize-qjs').then(() => false, () => 'there is no engine');

function source(text, name = 'plugin.js') {
  const file = path.join(directory, name);
  fs.writeFileSync(file, text);
  return file;
}

const refusal = async (text, message) =>
  assert.rejects(definitions(source(text)), (error) => error instanceof BuildError && message.test(error.message));

/** Writes the files of a package that is installed beside the sources. */
function installed(name, manifest, modules) {
  const home = path.join(directory, 'node_modules', name);
  fs.mkdirSync(home, { recursive: true });
  const written = { ...modules, 'package.json': JSON.stringify({ name, ...manifest }) };
  for (const [file, text] of Object.entries(written)) fs.writeFileSync(path.join(home, file), text);
}

/** Returns the description of a tool that shows the value of an expression. */
async function described(imports, expression) {
  const options = `name: 'a', description: String(${expression}), sideEffects: 'none', run() {}`;
  const [made] = await definitions(source(`${HEAD}${imports}\ntool({ ${options} });`));
  return made.description;
}

const TOOL = "{ name: 'a', description: 'A.', sideEffects: 'none', run() {} }";
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

test('packages give their variant for a browser', { skip: esbuild }, async () => {
  const node = "import 'node:crypto'; export default 'for Node';";
  const modules = { 'index.js': node, 'index.browser.js': "export default 'for a browser';" };
  const variants = { node: './index.js', browser: './index.browser.js', default: './index.js' };
  const exported = { '.': variants };
  installed('by-condition', { type: 'module', exports: exported }, modules);
  installed('by-name', { main: 'index.js', browser: 'index.browser.js' }, modules);
  const replaced = { './index.js': './index.browser.js' };
  installed('by-file', { main: 'index.js', browser: replaced }, modules);
  installed('without-module', { main: 'index.js', browser: { 'node:crypto': false, tty: false } }, {
    'index.js': "require('tty'); module.exports = Object.keys(require('node:crypto')).length;",
  });
  for (const name of ['by-condition', 'by-name', 'by-file']) {
    assert.equal(await described(`import value from '${name}';`, 'value'), 'for a browser', name);
  }
  assert.equal(await described("import value from 'without-module';", 'value'), '0');
});

test('package may try a module of Node, and ask for its mode', { skip: esbuild }, async () => {
  installed('trying', { main: 'index.js' }, {
    'index.js': "try { require('tty'); } catch { module.exports = process.env.NODE_ENV; }",
  });
  assert.equal(await described("import value from 'trying';", 'value'), 'production');
  const needing = "\nmodule.exports = require('stream/promises');";
  installed('needing', { main: 'index.js' }, { 'index.js': needing });
  await refusal("import 'needing';", /needing\/index\.js:2: `stream\/promises` does not exist/);
});

test('package that is not installed is named with its remedy', { skip: esbuild }, async () => {
  await refusal("import 'absent/deep.js';", /`absent` is not installed: run `npm install absent`/);
  await refusal("import '@team/absent/a';", /@team\/absent` is not installed: run `npm install @/);
  installed('closed', { exports: { '.': './index.js' } }, { 'index.js': '' });
  await refusal("import 'closed/deep.js';", /"closed\/deep\.js".*\.\/deep\.js.*is not exported/);
  await refusal("import 'closed/deep.js';", /^(?!.*npm install)/);
  installed('open', { main: 'index.js' }, { 'index.js': '' });
  await refusal("import 'open/deep.js';", /plugin\.js:1: Could not resolve "open\/deep\.js"$/);
  await refusal("import './absent.js';", /plugin\.js:1: Could not resolve "\.\/absent\.js"$/);
});

test('package replaces a module of Node that has its name', { skip: esbuild }, async () => {
  installed('events', { main: 'index.js' }, { 'index.js': "module.exports = 'a package';" });
  assert.equal(await described("import value from 'events';", 'value'), 'a package');
});

test('bundle does not depend on the place of its project', { skip: esbuild }, async () => {
  const codes = ['one', 'other/place'].map(async (place) => {
    const project = path.join(directory, place);
    fs.mkdirSync(path.join(project, 'src'), { recursive: true });
    fs.writeFileSync(path.join(project, 'package.json'), '{}');
    fs.writeFileSync(path.join(project, 'src/index.js'), `${HEAD}console.log(t);`);
    return (await bundle(path.join(project, 'src/index.js'), 'sandbox')).code;
  });
  assert.equal(await codes[0], await codes[1]);
});

test('faults of a definition have the line of its call', { skip: esbuild }, async () => {
  const tool = "tool({\n  name: 'a', description: 'A.'";
  const run = 'run() {} });';
  await refusal(`${HEAD}\n${tool}, sideEffects: 'reads', ${run}`, /^plugin\.js:3: a: `sideEffects/);
  await refusal(`${HEAD}\n\n${tool}, input: { a: 5 }, ${run}`, /^plugin\.js:4: a: `input` is/);
  await refusal(`${HEAD}\nt.enum();`, /^plugin\.js:3: t\.enum takes/);
  await refusal('\nconst x = 1;', /^plugin\.js: no tool is defined/);
});

test('faults while a module is loaded have its lines', { skip: esbuild }, async () => {
  source('\n\nexport function fail() {\n  return undefined.x;\n}', 'helper.ts');
  const calls = '[1]\n  .map((x) => x)\n  .map(() => fail());';
  const text = `import { fail } from './helper.ts';\n\n${calls}`;
  await refusal(text, /^plugin\.js cannot be loaded: TypeError: .*\n +at fail \(helper\.ts:4\)\n/);
  await refusal(text, /helper\.ts:4\)\n +at plugin\.js:5\n/);
  await refusal(text, /^(?!.*(plugin\.mjs|node:|palisade-))/s);
  await refusal("\nthrow 'a text';", /^plugin\.js cannot be loaded: a text$/);
});

test('fault that only the engine finds has its line', { skip: esbuild || engine }, async () => {
  const file = source(`${HEAD}\n\nnew URL('https://a.example');\ntool(${TOOL});`);
  await assert.rejects(
    build(file, path.join(directory, 'plugin.wasm')),
    /sandbox's engine: Error: URL is not defined\n +at <anonymous> \(plugin\.js:4\)$/,
  );
});

test('places of the bundle become those of the sources', { skip: esbuild }, async () => {
  const failing = 'export function first() {\n  return Math\n\n    .absent; }';
  installed('failing', { type: 'module', main: 'index.js' }, { 'index.js': `\n${failing}` });
  const calls = "// A comment.\nfirst('\\n');\n[1]\n  .map(first);\n";
  const text = `import { first } from 'failing';\n${calls}`;
  const { code, lines } = await bundle(source(text), 'sandbox');
  const rows = code.split('\n');
  const placed = (part) => {
    const at = rows.findIndex((row) => row.includes(part));
    return located(`componentize-qjs:user.js:${at + 1}:${rows[at].indexOf(part) + 1}`, lines);
  };
  assert.equal(placed('first("\\n")'), 'plugin.js:3');
  assert.equal(placed('[1].map(first)'), 'plugin.js:4');
  assert.equal(placed('map(first)'), 'plugin.js:5');
  assert.equal(placed('return Math.absent'), 'node_modules/failing/index.js:3');
  assert.match(placed('function serve('), /^palisade-guest\/src\/component\.js:\d+$/);
  assert.ok(code.includes(JSON.stringify(lines)));
  // Without a build there are no lines.
  assert.equal(located('componentize-qjs:user.js:5'), 'componentize-qjs:user.js:5');
});
