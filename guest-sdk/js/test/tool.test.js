import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { beforeEach, test } from 'node:test';
import {
  Cancelled, DefinitionError, InvalidInput, NotFound, Output, PermissionDenied, ToolError, files,
  image, json, link, resource, t, text, tool,
} from 'palisade-guest';
import { Recorder, call, definition, testContext } from 'palisade-guest/testing';
import { forgetTools } from '../src/tool.js';

const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 1]);

beforeEach(forgetTools);

const make = (options) => tool({ name: 'probe', description: 'Probes.', sideEffects: 'none', run: () => {}, ...options });
const returning = (value, options) => {
  forgetTools();
  return call(make({ run: () => value, ...options })).content.map(({ tag, val }) => [tag, val]);
};

test('each type has its schema', () => {
  const rows = [
    [t.string('A name.'), { type: 'string', description: 'A name.' }],
    [t.integer().min(1).max(9), { type: 'integer', minimum: 1, maximum: 9 }],
    [t.string().min(1), { type: 'string', minLength: 1 }],
    [t.array(t.number()).max(3), { type: 'array', items: { type: 'number' }, maxItems: 3 }],
    [t.enum(['a', 'b']), { type: 'string', enum: ['a', 'b'] }],
    [t.record(t.boolean()), { type: 'object', additionalProperties: { type: 'boolean' } }],
    [t.union([t.string(), t.integer()]), { anyOf: [{ type: 'string' }, { type: 'integer' }] }],
    [t.path(), { type: 'string', format: 'workspace-path' }],
    [t.readPath(), { type: 'string', format: 'workspace-path', 'x-access': 'read' }],
    [t.writePath(), { type: 'string', format: 'workspace-path', 'x-access': 'write' }],
    [t.string().pattern(/^a+$/), { type: 'string', pattern: '^a+$' }],
    [t.any(), {}],
  ];
  for (const [type, schema] of rows) assert.deepEqual(type.schema, schema);
});

test('input is an object whose optional members may be null', () => {
  const made = make({ input: { name: t.string(), times: t.integer().default(2), note: t.string().optional() } });
  assert.deepEqual(definition(made).inputSchema, {
    type: 'object',
    properties: { name: { type: 'string' }, times: { type: 'integer', default: 2 }, note: { type: 'string' } },
    required: ['name'],
  });
  assert.deepEqual(definition(made).metadata, { 'null-is-absent': true });
});

test('a JSON Schema is passed on as it is', () => {
  const schema = { type: 'object', properties: { a: { type: ['string', 'null'] } } };
  const made = make({ input: schema, run: ({ a }) => String(a) });
  assert.deepEqual(definition(made).inputSchema, schema);
  assert.deepEqual(definition(made).metadata, {});
  assert.equal(call(made, { a: null }).text, 'null');
});

test('values are read with their defaults, and wrong ones are named by a pointer', () => {
  const input = t.object({ a: t.array(t.object({ 'b/c': t.integer().min(1) })), d: t.string().default('x') });
  assert.deepEqual(input.read({ a: [{ 'b/c': 1 }], unknown: 1 }), { a: [{ 'b/c': 1 }], d: 'x' });
  const refusal = (value) => {
    try {
      input.read(value);
    } catch (error) {
      assert.ok(error instanceof InvalidInput);
      return [error.field, error.reason];
    }
    return assert.fail('it was accepted');
  };
  assert.deepEqual(refusal({}), ['/a', 'is required']);
  assert.deepEqual(refusal({ a: 5 }), ['/a', 'expected an array, not a number']);
  assert.deepEqual(refusal({ a: [{ 'b/c': 'x' }] }), ['/a/0/b~1c', 'expected an integer, not a string']);
  assert.deepEqual(refusal({ a: [{ 'b/c': 0 }] }), ['/a/0/b~1c', 'must be at least 1']);
  assert.deepEqual(refusal([]), ['', 'expected an object, not an array']);
  assert.throws(() => t.enum(['a']).read('b'), /must be one of a/);
  assert.throws(() => t.union([t.string(), t.integer()]).read(true), /none of the accepted types/);
});

test('each returned value becomes its blocks', () => {
  assert.deepEqual(returning(undefined), []);
  assert.deepEqual(returning('a'), [['text', 'a']]);
  assert.deepEqual(returning({ a: new Map([['b', 1]]) }), [['json', '{"a":{"b":1}}']]);
  assert.deepEqual(returning(['a']), [['json', '["a"]']]);
  assert.deepEqual(returning(PNG), [['image', { mime: 'image/png', data: PNG }]]);
  assert.deepEqual(returning([text('a'), 'b', json(1)]), [['text', 'a'], ['text', 'b'], ['json', '1']]);
  assert.deepEqual(returning(link('https://a.example', 'a')), [['link', { uri: 'https://a.example', name: 'a', mime: null }]]);
  assert.deepEqual(returning(resource('a:b', 'c')), [['resource', { uri: 'a:b', mime: null, body: { tag: 'text', val: 'c' } }]]);
  assert.deepEqual(returning('a', { output: t.string() }), [['json', '"a"']]);
  assert.equal(call(make({ name: 'failing', run: () => new Output('no', { success: false }) })).success, false);
});

test('value without a JSON form is an error', () => {
  assert.throws(() => returning({ a: NaN }), /NaN has no JSON form/);
  assert.throws(() => returning(() => {}), /no JSON form/);
  assert.throws(() => returning(Promise.resolve(1)), /not a promise/);
  assert.throws(() => image(new Uint8Array(4)), /media type of this image is not known/);
});

test('exceptions become clean errors', () => {
  const failing = (thrown) => {
    forgetTools();
    try {
      call(make({ run: () => { throw thrown; } }));
    } catch (error) {
      return [error.kind, error.message];
    }
    return assert.fail('it succeeded');
  };
  assert.deepEqual(failing(new TypeError('x is not a function')), ['failed', 'TypeError: x is not a function']);
  assert.deepEqual(failing(new Error('no luck')), ['failed', 'no luck']);
  assert.deepEqual(failing(new NotFound('no a')), ['not-found', 'no a']);
  assert.deepEqual(failing(new InvalidInput('/a', 'is odd')), ['invalid-input', '/a: is odd']);
  assert.deepEqual(failing('a string'), ['failed', 'a string']);
  assert.deepEqual(failing({ a: 1 }), ['failed', 'the tool threw {"a":1}']);
});

test('files of the workspace are read, written and listed', () => {
  const made = make({
    sideEffects: 'write',
    run(_, ctx) {
      files.createDirectory('x/y', { recursive: true });
      files.writeText('x/y/b', files.readText('a') + '!');
      files.rename('x/y/b', 'x/c');
      files.remove('x/y');
      ctx.modified('x/c');
      return [files.list(), files.walk(), files.exists('nope'), files.stat('a').size];
    },
  });
  const result = call(made, {}, { files: { a: 'hé' } });
  const listed = [{ name: 'a', type: 'file' }, { name: 'x', type: 'directory' }];
  assert.deepEqual(result.json, [listed, ['a', 'x/c'], false, 3]);
  assert.equal(result.files['x/c'].toString(), 'hé!');
  assert.deepEqual(result.output.filesModified, ['x/c']);
});

test('a walk leaves out the names that are skipped', () => {
  const made = make({ sideEffects: 'read', run: () => files.walk('.', { skip: ['lib'] }) });
  const tree = { a: '', 'lib/b': '', 'c/lib/d': '', 'c/e': '' };
  assert.deepEqual(call(made, {}, { files: tree }).json, ['a', 'c/e']);
});

test('a pattern is checked by code points', () => {
  const made = make({ input: { sign: t.string().pattern(/^.$/) }, run: ({ sign }) => sign });
  assert.equal(call(made, { sign: '😀' }).text, '😀');
  assert.throws(() => call(made, { sign: 'ab' }), (error) => error instanceof InvalidInput && error.field === '/sign');
});

test('errors of files keep their kind and path', () => {
  const made = make({ sideEffects: 'read', input: { path: t.readPath() }, run: ({ path }) => files.readText(path) });
  assert.throws(() => call(made, { path: 'a' }), (e) => e instanceof NotFound && e.message === 'a: no such file or directory');
  assert.throws(() => call(made, { path: '../a' }), PermissionDenied);
  assert.throws(() => call(made, { path: 'a' }, { files: { a: new Uint8Array([0xff]) } }), /no text in UTF-8/);
});

test('tool of class read that writes is refused, and one of class none sees no files', () => {
  const sneak = make({ sideEffects: 'read', run: () => files.writeText('a', 'b') });
  assert.throws(() => call(sneak), /class `read` changed a/);
  const look = make({ name: 'look', run: () => files.readText('a') });
  assert.throws(() => call(look, {}, { files: { a: '' } }), PermissionDenied);
  assert.throws(() => files.readText('a'), /a test uses `call`/);
});

test('messages to the host are recorded, and a cancelled call stops', () => {
  const made = make({
    run(_, ctx) {
      ctx.info('i');
      ctx.warn('w');
      ctx.progress(1, 2, 'half');
      ctx.emit('x');
      return [ctx.callId, ctx.caller, ctx.remainingMs > 0];
    },
  });
  const result = call(made, {}, { callId: 'c', context: '{"user":1}' });
  assert.deepEqual(result.logs, [['info', 'i'], ['warn', 'w']]);
  assert.deepEqual(result.progress, [[1, 2, 'half']]);
  assert.deepEqual(result.emitted, ['x']);
  assert.deepEqual(result.json, ['c', { user: 1 }, true]);
  let rounds = 0;
  const endless = make({ name: 'endless', run(_, ctx) { for (;; rounds += 1) ctx.checkpoint(); } });
  assert.throws(() => call(endless, {}, { cancelAfter: 2 }), Cancelled);
  assert.equal(rounds, 2);
});

test('a tool can be called as its function', () => {
  const record = new Recorder();
  const made = make({ input: { name: t.string() }, run({ name }, ctx) { ctx.info(name); return `Hello, ${name}!`; } });
  assert.equal(made({ name: 'Ada' }, testContext(record)), 'Hello, Ada!');
  assert.deepEqual(record.logs, [['info', 'Ada']]);
});

test('faulty definitions are refused with the way out', () => {
  const refusal = (options, message) => {
    forgetTools();
    assert.throws(() => make(options), (error) => error instanceof DefinitionError && message.test(error.message));
  };
  refusal({ description: ' ' }, /has no description/);
  refusal({ name: 'Probe' }, /no name of a tool/);
  refusal({ sideEffects: 'reads' }, /one of none, read/);
  refusal({ run: undefined }, /a function `run/);
  refusal({ run: async () => {} }, /not an `async` one/);
  refusal({ timeout: 5 }, /`timeout` is no option/);
  refusal({ input: t.string() }, /the input is an object/);
  refusal({ input: { a: 'string' } }, /neither members/);
  refusal({ description: 'x'.repeat(16 * 1024 + 1) }, /more than 16 KiB/);
  const wrong = (type, message) => assert.throws(type, (error) => error instanceof DefinitionError && message.test(error.message));
  wrong(() => t.string().pattern(/^a$/i), /a schema has no flags/);
  wrong(() => t.string().pattern('['), /the pattern \[: Invalid/);
  wrong(() => t.integer().min(3).default(1), /the default 1: must be at least 3/);
  wrong(() => t.integer().default(1).min(3), /the default 1: must be at least 3/);
  wrong(() => t.enum(['x', 'y']).default('z'), /the default "z": must be one of x, y/);
  make({});
  assert.throws(() => make({}), /two tools/);
  assert.ok(call(make({ name: 'limit', description: 'x'.repeat(16 * 1024) })));
});

test('a plugin offers at most 256 tools', () => {
  for (let at = 0; at < 256; at += 1) make({ name: `t${at}` });
  assert.throws(() => make({}), /at most 256/);
});

test('the types have every name of the contract', () => {
  const wit = readFileSync(new URL('../wit/deps/palisade-tool/types.wit', import.meta.url), 'utf8');
  const types = readFileSync(new URL('../types/contract.d.ts', import.meta.url), 'utf8');
  const code = wit.replace(/\/\/.*$/gm, '');
  const fields = [...code.matchAll(/record [\w-]+ \{([^}]*)\}/g)].flatMap(([, body]) => [...body.matchAll(/^\s*%?([\w-]+):/gm)]);
  const cases = [...code.matchAll(/(?:variant|enum) [\w-]+ \{([^}]*)\}/g)].flatMap(([, body]) => [...body.matchAll(/^\s*([\w-]+)[(,]/gm)]);
  assert.ok(fields.length > 30 && cases.length > 15, `${fields.length} ${cases.length}`);
  for (const [, name] of fields) {
    const camel = name.replace(/-(.)/g, (_, c) => c.toUpperCase());
    assert.match(types, new RegExp(`\\b${camel}:`));
  }
  for (const [, name] of cases) assert.ok(types.includes(`'${name}'`), name);
});
