// One tool for each promise of the SDK.
import { InvalidInput, ToolError, files, t, tool } from 'palisade-guest';

tool({
  name: 'words',
  description: 'Counts the words of a file.',
  sideEffects: 'read',
  input: { path: t.readPath() },
  output: { words: t.integer(), longest: t.string() },
  run({ path }, ctx) {
    const words = files.readText(path).split(/\s+/).filter(Boolean);
    console.info(`${words.length} words`);
    ctx.progress(1, 2, 'half');
    ctx.emit('counting');
    const longest = words.reduce((longest, word) => (word.length > longest.length ? word : longest), '');
    return { words: words.length, longest };
  },
});

tool({
  name: 'sneak',
  description: 'Writes a file, although it declares to read only.',
  sideEffects: 'read',
  input: { path: t.readPath() },
  run({ path }) {
    files.writeText(path, 'x');
    return 'saved';
  },
});

tool({
  name: 'save',
  description: 'Writes a file.',
  sideEffects: 'write',
  input: { path: t.writePath(), text: t.string() },
  run({ path, text }, ctx) {
    files.writeText(path, text);
    ctx.modified(path);
    return 'saved';
  },
});

tool({
  name: 'fail',
  description: 'Fails in several ways.',
  sideEffects: 'none',
  input: { how: t.string() },
  run({ how }) {
    if (how === 'error') throw new ToolError('a clean message');
    if (how === 'input') throw new InvalidInput('/how', 'is not this');
    return undefined.absent;
  },
});

tool({
  name: 'random_number',
  description: 'Returns a random number.',
  sideEffects: 'none',
  run: () => Math.random(),
});
