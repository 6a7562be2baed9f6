/** Uses that type-check, and faults that do not. `types.test.js` checks this file. */

import { Output, t, tool } from 'palisade-guest';

const common = { name: 'probe', description: 'Probes.', sideEffects: 'none' } as const;
const kind = t.enum(['a', 'b']);
const some: number[] = [1];

// Strings of an enum keep their value in the result, at any depth.
tool({ ...common, output: { kind }, run() { return { kind: 'a' }; } });
tool({ ...common, output: t.object({ kind }), run: () => ({ kind: 'a' }) });
tool({ ...common, output: { kinds: t.array(kind) }, run: () => ({ kinds: ['a', 'b'] }) });
tool({
  ...common,
  input: { kind },
  output: { kind, inner: t.object({ kind }).optional() },
  run: (input) => (input.kind === 'a' ? { kind: input.kind } : { kind: 'b', inner: { kind: 'a' } }),
});
// @ts-expect-error: not of the enum
tool({ ...common, output: { kind }, run: () => ({ kind: 'c' }) });
// @ts-expect-error: not of the enum
tool({ ...common, output: { kinds: t.array(kind) }, run: () => ({ kinds: ['a', 'c'] }) });
// @ts-expect-error: the member is missing
tool({ ...common, output: { kind }, run: () => ({}) });

// Other results have the types of the output.
tool({ ...common, output: { some: t.array(t.integer()) }, run: () => ({ some }) });
tool({ ...common, output: { a: t.any(), b: t.record(t.string()) }, run: () => ({ a: 1, b: {} }) });
tool({ ...common, output: { kind }, run: () => new Output('none', { success: false }) });
// @ts-expect-error: not a number
tool({ ...common, output: { some: t.integer() }, run: () => ({ some: 'x' }) });

// Without types of an output, a tool returns anything.
tool({ ...common, run: () => 5 });
tool({ ...common, run() {} });
tool({ ...common, run: (): unknown => undefined });
tool({ ...common, output: { type: 'object', properties: {} }, run: () => ({ kind: 'a' }) });

// Input has the types of its members.
const input = { count: t.integer().default(3), note: t.string().optional() };
tool({ ...common, input, run: ({ count, note }) => note?.repeat(count) });
// @ts-expect-error: the note may be absent
tool({ ...common, input, run: ({ note }) => note.length });
