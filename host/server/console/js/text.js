// Text that may be hostile, made safe to look at. Characters that could hide or reorder text are
// shown as escapes, the same characters as `palisade::tool::text::visible` escapes in the program.

// Controls but tab and line feed, everything that Unicode calls ignorable (direction marks,
// joiners, tags, fillers), line separators, annotations, the blank Braille pattern, the controls of
// Egyptian hieroglyphs, the filler of the Khitan script, and halves of surrogate pairs.
const DECEPTIVE =
  String.raw`(?![\t\n\uFE0E\uFE0F])[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}` +
  String.raw`\u2028\u2029\uFFF9-\uFFFB\u2800\u{13430}-\u{1343F}\u{16FE4}]`;
// A variation selector is effective after a symbol or inside a keycap; elsewhere it is invisible.
const SELECTOR =
  String.raw`(?<![\u00A9\u00AE\u203C\u2049\u2122\u2139\u2190-\u21FF\u2300-\u23FF` +
  String.raw`\u24C2\u25A0-\u27BF\u2934\u2935\u2B00-\u2BFF\u3030\u303D\u3297\u3299` +
  String.raw`\u{1F000}-\u{1FAFF}])(?<![0-9#*](?=.\u20E3))[\uFE0E\uFE0F]`;
// More marks than any language stacks on a letter would be drawn over the lines around it.
const STACKED = String.raw`(?<=\p{M}{4})\p{M}`;
const IN_BLOCKS = new RegExp(`${DECEPTIVE}|${SELECTOR}|${STACKED}`, 'gu');
const IN_LINES = new RegExp(`[\\t\\n]|${DECEPTIVE}|${SELECTOR}|${STACKED}`, 'gu');
// The escapes of one text that are marked as such; the others are plain text, to bound the page.
const MOST_MARKED = 2000;

/** Returns the escape of one character, such as `\u{202E}`. */
function escaped(character) {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  if (character === '\r') return '\\r';
  return `\\u{${character.codePointAt(0).toString(16).toUpperCase()}}`;
}

/**
 * Returns JSON text with a line for each member and element. It is not parsed into values: a number
 * would be rounded, and members would change their order.
 */
export function indented(json) {
  let level = 0;
  let out = '';
  let before = '';
  const line = () => `\n${'  '.repeat(Math.min(level, 32))}`;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s"{}[\],:]+/gs)) {
    const closes = token === '}' || token === ']';
    if (closes) level = Math.max(0, level - 1);
    const opened = before === '{' || before === '[';
    if (closes ? !opened : opened || before === ',') out += line();
    out += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') level += 1;
    before = token;
  }
  return out;
}

/** Returns the text as one visible line: for names, titles, attributes. */
export function visible(text) {
  return String(text).replace(IN_LINES, escaped);
}

/**
 * Returns nodes that show the text. Escapes are marked, so that they differ from a text that
 * contains the characters of an escape. `lines` keeps tabs and line feeds.
 */
export function shown(text, lines = false) {
  const fragment = document.createDocumentFragment();
  const source = String(text);
  const pattern = lines ? IN_BLOCKS : IN_LINES;
  let end = 0;
  let marked = 0;
  for (const found of source.matchAll(pattern)) {
    if (marked === MOST_MARKED) break;
    if (found.index > end) fragment.append(source.slice(end, found.index));
    const escape = document.createElement('span');
    escape.className = 'escape';
    escape.textContent = escaped(found[0]);
    fragment.append(escape);
    end = found.index + found[0].length;
    marked += 1;
  }
  if (end < source.length) fragment.append(source.slice(end).replace(pattern, escaped));
  return fragment;
}

/** Returns the first `limit` characters, never half of a pair. */
export function cut(text, limit) {
  const half = text.charCodeAt(limit - 1);
  return text.slice(0, half >= 0xd800 && half <= 0xdbff ? limit - 1 : limit);
}

/** Returns a short form of a text for a place with little room. */
export function short(text, limit = 80) {
  const all = String(text ?? '');
  return all.length > limit ? `${cut(all, limit)}…` : all;
}

/** Returns a text of the server as a sentence of its own. */
export function asSentence(text) {
  const whole = String(text ?? '').trim();
  // Only a plain word: a name keeps its letters.
  const begun = whole.replace(/^[a-z]+(?=[ ,])/, (word) => word[0].toUpperCase() + word.slice(1));
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
