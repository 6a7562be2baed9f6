/**
 * The lines of a bundle, as a text that is short enough to be part of it.
 *
 * The first line has the runs, each as `GAP.COLUMN.SOURCE.LINE` in base 36: the lines of the bundle
 * since the previous run, the column, the change of the source's index, and the line of the
 * source. Each next line of the bundle is the next line of the source until another run begins.
 * The names of the sources are the other lines.
 */

/** Sources of packages. */
const FOREIGN = /node_modules\/|^palisade-guest:/;
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Returns the lines of the bundle with this source map. */
export function linesOf({ mappings, sources }) {
  const runs = [];
  let last = { line: 0, source: 0, original: NaN };
  let [begun, from] = [0, 0];
  for (const place of placesOf(mappings)) {
    const { line, column, source, original } = place;
    const isFirst = line !== last.line || runs.length === 0;
    // Within a line, only the author's own sources are worth the columns.
    if (!isFirst && FOREIGN.test(sources[source])) continue;
    const isNext = source === last.source && original === last.original + line - last.line;
    last = place;
    if (isNext) continue;
    const run = [line - begun, isFirst ? 0 : column, source - from, original + 1];
    runs.push(run.map((number) => (number === 0 ? '' : number.toString(36))).join('.'));
    [begun, from] = [line, source];
  }
  return [runs.join(' '), ...sources.map(shown)].join('\n');
}

/** Returns the name of a source for an author. */
function shown(source) {
  return source.replace(/^palisade-guest:/, 'palisade-guest/').replaceAll('\n', ' ');
}

/** Reads the mappings of a source map, with lines and columns from 0. */
function* placesOf(mappings) {
  let [source, original] = [0, 0];
  for (const [line, segments] of mappings.split(';').entries()) {
    let column = 0;
    for (const segment of segments.split(',').filter(Boolean)) {
      const [columns, sourceChange, lineChange] = numbersOf(segment);
      column += columns;
      if (sourceChange === undefined) continue;
      source += sourceChange;
      original += lineChange;
      yield { line, column, source, original };
    }
  }
}

/** Reads numbers of five bits a digit, the lowest first. The lowest bit of each is its sign. */
function numbersOf(segment) {
  const numbers = [];
  let [value, shift] = [0, 0];
  for (const letter of segment) {
    const digit = DIGITS.indexOf(letter);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}
