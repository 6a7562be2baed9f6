import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parts } from '../src/component.js';

test('a line that is too long for the log is cut between characters', () => {
  const lengths = (line) => [...parts(line)].map((part) => Buffer.byteLength(part));
  assert.deepEqual(lengths(''), []);
  assert.deepEqual(lengths('a'.repeat(4096)), [4096]);
  assert.deepEqual(lengths('é'.repeat(4097)), [4096, 4096, 2]);
  assert.deepEqual(lengths('a' + '😀'.repeat(1024)), [4093, 4]);
  assert.deepEqual([...parts('a\ud800b')], ['a\ufffdb']);
});
