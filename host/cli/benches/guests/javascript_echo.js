// The guest that the benchmark calls: one tool in JavaScript that gives back its input.
const inputSchema = JSON.stringify({ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] });

export const tool = {
  definitions: () => [
    { name: 'javascript_echo', description: 'For the benchmark.', inputSchema, sideEffects: 'none', idempotent: true, metadata: '' },
  ],
  execute: (call) => ({
    content: [{ tag: 'text', val: JSON.stringify(JSON.parse(call.input)) }],
    success: true,
    metadata: '',
    filesModified: [],
  }),
};
