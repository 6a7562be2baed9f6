// One tool for each promise of the SDK: `tests/tests/sdks.rs` builds and calls them.
import { InvalidInput, ToolError, files, t, tool } from 'palisade-guest';

// Drawn when the plugin is built. No call may go on with what it left.
Math.random();

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
  name: 'survey',
  description: 'Counts the files in all directories.',
  sideEffects: 'read',
  input: { skip: t.array(t.string()).default([]) },
  run({ skip }) {
    const found = files.walk('.', { skip });
    for (const path of found) {
      if (!files.exists(path) || files.stat(path).size !== files.readText(path).length) throw new ToolError(path);
    }
    return `${found.length} files`;
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
