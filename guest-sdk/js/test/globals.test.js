import assert from 'node:assert/strict';
import { test } from 'node:test';
import vm from 'node:vm';
import { readFileSync } from 'node:fs';
import { randomFillSync } from 'node:crypto';

/** Runs the module in a global scope like QuickJS's, which has none of what it defines. */
function bare() {
  const source = readFileSync(new URL('../src/globals.js', import.meta.url), 'utf8').replaceAll('export function', 'function');
  const logged = [];
  const drawn = [];
  const bytes = (n) => (drawn.push(n), randomFillSync(new Uint8Array(n)));
  const scope = vm.createContext({ Uint8Array, Uint32Array, logged, bytes });
  vm.runInContext(`${source}\ndelete globalThis.console;\ndefineGlobals((level, text) => logged.push([level, text]), bytes);`, scope);
  return { scope, logged, drawn, run: (code) => vm.runInContext(code, scope) };
}

test('text is encoded and decoded as Node does', () => {
  const { scope } = bare();
  const texts = ['', 'abc', 'é€😀', '\ud800', '\ufeffa', 'x'.repeat(10_000), '日本語'.repeat(5000)];
  for (const text of texts) {
    scope.text = text;
    const encoded = vm.runInContext('new TextEncoder().encode(text)', scope);
    assert.deepEqual([...encoded], [...new TextEncoder().encode(text)]);
    scope.data = encoded;
    assert.equal(vm.runInContext('new TextDecoder().decode(data)', scope), new TextDecoder().decode(encoded));
  }
});

test('invalid UTF-8 is replaced or refused as Node does', () => {
  const { scope } = bare();
  const invalid = [[0xff], [0xc3], [0xe2, 0x82], [0xe2, 0x82, 0x41], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98], [0xf5, 0x80], [0x80, 0x41]];
  for (const bytes of invalid) {
    scope.data = new Uint8Array(bytes);
    const replaced = vm.runInContext('new TextDecoder().decode(data)', scope);
    assert.match(replaced, /\ufffd/);
    assert.throws(() => vm.runInContext('new TextDecoder("utf-8", { fatal: true }).decode(data)', scope), /no UTF-8/);
  }
  assert.throws(() => vm.runInContext('new TextDecoder("latin1")', scope), /not supported/);
});

test('the console goes to the log', () => {
  const { run, logged } = bare();
  run('console.log("a", { b: 1 }); console.error(new Error("x").message); console.group()');
  assert.deepEqual(JSON.parse(JSON.stringify(logged)), [['info', 'a {"b":1}'], ['error', 'x']]);
});

test('random numbers come from the call', () => {
  const { run } = bare();
  const numbers = run('Array.from({ length: 1000 }, () => Math.random())');
  assert.ok(numbers.every((n) => n >= 0 && n < 1));
  assert.equal(new Set(numbers).size, 1000);
  assert.match(run('crypto.randomUUID()'), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test('a call does not go on with the random numbers of the build', () => {
  const { run, drawn } = bare();
  run('Math.random()');
  const ofTheBuild = drawn.length;
  run('forgetRandomness()');
  run('Math.random()');
  assert.equal(drawn.length, ofTheBuild + 1);
});
