/** Says where a place of the bundle is in the author's sources. */

// The build puts the lines of the bundle here (`lines.js`). Without a build, and in a minified
// bundle, places stay as they are.
const LINES = '@palisade-lines@';
/** A place as the engine of the sandbox shows it. */
const PLACE = /componentize-qjs:user\.js:(\d+)(?::(\d+))?/g;

/**
 * Replaces places of the bundle by those of the sources, such as `src/index.js:2`.
 *
 * @param {string} text A stack, or a message with places.
 * @param {string} [lines] The lines of the bundle.
 * @param {RegExp} [place] A place, with groups for its line and column.
 */
export function located(text, lines = LINES, place = PLACE) {
  if (lines.startsWith('@')) return text;
  return text.replace(place, (whole, line, column) => {
    return placed(lines, Number(line), Number(column ?? 1)) ?? whole;
  });
}

function placed(lines, line, column) {
  const [runs, ...sources] = lines.split('\n');
  let [at, source, found] = [1, 0, undefined];
  for (const run of runs.split(' ')) {
    const [gap, from, name, original] = run.split('.').map((digits) => parseInt(digits || '0', 36));
    at += gap;
    if (at > line || (at === line && from >= column)) break;
    source += name;
    found = [source, original + line - at];
  }
  return found && `${sources[found[0]]}:${found[1]}`;
}
