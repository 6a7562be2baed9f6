import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidInput, NotFound } from 'palisade-guest';
import { call } from 'palisade-guest/testing';
import { outline, render } from '../src/index.js';

const files = { 'a.md': '# One & two\n\ntext\n\n## Part\n\n#### Deep\n' };
const rendered = (markdown) => call(render, { path: 'a.md', to: 'a.html' }, { files: { 'a.md': markdown } }).files['a.html'].toString();

test('headings are listed with their lines', () => {
  const { headings } = call(outline, { path: 'a.md' }, { files }).json;
  assert.deepEqual(headings, [{ level: 1, line: 1, text: 'One & two' }, { level: 2, line: 5, text: 'Part' }]);
});

test('depth is obeyed, and bounded', () => {
  assert.equal(call(outline, { path: 'a.md', depth: 4 }, { files }).json.headings.length, 3);
  assert.throws(() => call(outline, { path: 'a.md', depth: 7 }, { files }), InvalidInput);
});

test('page is written', () => {
  const result = call(render, { path: 'a.md', to: 'a.html' }, { files });
  assert.deepEqual(result.output.filesModified, ['a.html']);
  assert.match(result.files['a.html'].toString(), /<title>One &amp; two<\/title>[^]*<h2>Part<\/h2>/);
});

test('tables and code are converted', () => {
  const html = rendered('| a |\n|---|\n| 1 |\n\n```js\na < b\n```\n');
  assert.match(html, /<td>1<\/td>[^]*a &lt; b/);
});

test('nothing of the document can run in the page', () => {
  const links = '[x](javascript:alert) [x](&#106;avascript:alert) [x](java&Tab;script:alert) ![y](data:text/html,z)';
  const html = rendered(`<script>alert(1)</script>\n\n${links} [z](https://a.example)\n`);
  assert.doesNotMatch(html, /<script>|script:|data:/);
  assert.match(html, /&lt;script&gt;[^]*href="https:\/\/a.example"/);
});

test('links to the web and nearby stay', () => {
  for (const href of ['https://a.example/?a=b', 'mailto:a@b.example', '#part', 'b.md', '../c/d.md', '/e', 'f']) {
    assert.ok(rendered(`[x](${href})`).includes(`href="${href}"`), href);
  }
});

test('other files are refused', () => {
  assert.throws(() => call(render, { path: 'b.md', to: 'b.html' }, { files }), NotFound);
  assert.throws(() => call(render, { path: 'a.md', to: 'a.md' }, { files }), /is the source/);
  assert.throws(() => call(outline, { path: 'a.md' }, { files: { 'a.md': 'x'.repeat(1024 * 1024 + 1) } }), /limit is 1 MiB/);
  assert.ok(call(outline, { path: 'a.md' }, { files: { 'a.md': 'x'.repeat(1024 * 1024) } }));
});
