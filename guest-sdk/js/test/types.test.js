import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));

test('types accept each use, and refuse faults', () => {
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2023'];
  const tsc = file('../node_modules/typescript/bin/tsc');
  const checked = spawnSync(process.execPath, [tsc, ...options, file('types.ts')]);
  assert.equal(String(checked.stdout) + checked.stderr, '');
});
