/** The plugin `markdown`: converts Markdown to a HTML page, and lists its headings. */

import { marked } from 'marked';
import { InvalidInput, files, t, tool } from 'palisade-guest';

// A list of what is allowed: a browser decodes entities in an address before it reads the scheme.
const HARMLESS = /^(https?:\/\/|mailto:|#|\.{0,2}\/|[\w %-]+([./#?]|$))/i;
const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const STYLE = 'body{font:16px/1.6 system-ui;max-width:44rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto}';

/** Returns the headings of a document in order. */
export const outline = tool({
  name: 'outline_markdown',
  description: 'Lists the headings of a Markdown file with their levels and lines. Use it before reading a long document.',
  sideEffects: 'read',
  idempotent: true,
  input: {
    path: t.readPath('The Markdown file.'),
    depth: t.integer('The deepest level to list.').min(1).max(6).default(3),
  },
  run({ path, depth }) {
    let line = 1;
    const headings = [];
    for (const token of marked.lexer(source(path))) {
      if (token.type === 'heading' && token.depth <= depth) {
        headings.push({ level: token.depth, line, text: token.text });
      }
      line += token.raw.split('\n').length - 1;
    }
    return { headings };
  },
});

/** Writes a page. Its path is an argument, so that the question to a person names it. */
export const render = tool({
  name: 'render_markdown',
  description: 'Converts a Markdown file to an HTML page, and writes it. Raw HTML in the source becomes visible text.',
  sideEffects: 'write',
  idempotent: true,
  input: {
    path: t.readPath('The Markdown file.'),
    to: t.writePath('The page to write, such as the path of the source with the ending .html.'),
  },
  run({ path, to }, ctx) {
    if (to === path) throw new InvalidInput('to', `${path} is the source; give the page another name`);
    const markdown = source(path);
    const body = marked.parse(markdown, { gfm: true });
    const title = marked.lexer(markdown).find(({ type }) => type === 'heading')?.text ?? path;
    files.writeText(to, page(title, body));
    ctx.modified(to);
    return `wrote ${to}, ${body.length} characters`;
  },
});

// Nothing of a document may run in the page: raw HTML is shown, and links lead to the web or
// nearby.
marked.use({
  renderer: {
    html: ({ text }) => escape(text),
  },
  walkTokens(token) {
    const isLink = token.type === 'link' || token.type === 'image';
    if (isLink && !HARMLESS.test(token.href)) token.href = '#';
  },
});

function source(path) {
  const size = files.stat(path).size;
  if (size > 1024 * 1024) throw new InvalidInput('path', `${path} has ${size} bytes; the limit is 1 MiB`);
  return files.readText(path);
}

function page(title, body) {
  return `<!doctype html>\n<html>\n<head>\n<meta charset="utf-8">\n<title>${escape(title)}</title>\n<style>${STYLE}</style>\n</head>\n<body>\n${body}</body>\n</html>\n`;
}

function escape(text) {
  return text.replace(/[&<>"]/g, (sign) => ENTITIES[sign]);
}
