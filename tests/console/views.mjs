// Scenarios of single views: what they say when there is little to show, and how they name things.

import { accessible, ALLOW, check, DONE, live, options, send, sound, until } from './place.mjs';

export const views = (place) => ({
  async first_steps_are_shown_until_there_is_a_call() {
    const page = await place.window();
    const nothing = { items: [], next_cursor: null };
    await page.route('**/calls?*', (route) => route.fulfill({ json: nothing }));
    await page.goto(`${options.url}/#/now`);
    await page.getByRole('heading', { name: 'How a first call comes here' }).waitFor();
    const text = await page.locator('main').innerText();
    const command = `palisade mcp config --client CLIENT --http ${options.url}/mcp`;
    check(text.includes(command), `the command is there: ${text}`);
    check(text.includes('--token-file'), 'and where the token is');
    check(!options.client || !text.includes(options.client), 'but not the token');
    await sound(page, 'now-first');
    await accessible(page, 'the first steps');
    await page.unroute('**/calls?*');
    await place.call(await place.session(), 'read_file', { path: 'no-such-file' });
    await page.getByRole('heading', { name: 'How a first' }).waitFor({ state: 'detached' });
  },

  async used_link_offers_the_console_to_those_who_are_signed_in() {
    const page = await open(place, 'history');
    for (const from of ['about:blank', `${options.url}/#/history`]) {
      await page.goto(from);
      await page.goto(`${options.url}/#login=${options.login}`);
      await page.getByRole('heading', { name: 'You are signed in' }).waitFor();
      await sound(page, 'link-used-signed-in');
      await accessible(page, 'a used link of a signed-in browser');
      await page.getByRole('link', { name: 'Open the console' }).click();
      await page.getByRole('heading', { name: 'Waiting for an answer' }).waitFor();
      await live(page);
    }
    const stranger = await place.window({ signedIn: false });
    await stranger.goto(`${options.url}/#login=${options.login}`);
    const said = await stranger.locator('.problem').innerText();
    check(/did not sign you in\. [A-Z].*\.$/.test(said), `it is a sentence: ${said}`);
  },

  async input_is_shown_as_it_is_written() {
    const page = await open(place, 'now');
    const shown = (json) =>
      page.evaluate(async (text) => {
        const { indented } = await import(new URL('console/js/text.js', document.baseURI).href);
        return indented(text);
      }, json);
    const exact = '{"account":9007199254740993,"2":1e400,"1":[{},[],"a, {\\"b\\": 1}"]}';
    const lines = [
      '{',
      '  "account": 9007199254740993,',
      '  "2": 1e400,',
      '  "1": [',
      '    {},',
      '    [],',
      '    "a, {\\"b\\": 1}"',
      '  ]',
      '}',
    ].join('\n');
    check((await shown(exact)) === lines, 'numbers and the order of members stay');
    check((await shown(lines)) === lines, 'indented text stays');
    const escaped = await page.evaluate(async () => {
      const { visible } = await import(new URL('console/js/text.js', document.baseURI).href);
      return visible('\u{13430}\u{16FE4}\u202E\u2800');
    });
    check(escaped === '\\u{13430}\\u{16FE4}\\u{202E}\\u{2800}', `they are visible: ${escaped}`);
    check((await shown('{"cut": "with \\')) === '{\n  "cut": "with \\', 'cut text stays');
  },

  async filters_take_parts_of_known_names() {
    const session = await place.session();
    await place.call(session, 'read_file', { path: 'no-such-file' });
    const page = await open(place, 'history');
    await page.waitForSelector('#names-tool option', { state: 'attached' });
    const search = page.getByRole('button', { name: 'Search' });
    await page.getByLabel('Tool', { exact: true }).fill('FILE');
    await search.click();
    await page.getByText('More than one tool matches FILE').waitFor();
    await sound(page, 'history-unclear');
    await accessible(page, 'a filter that matches several tools');
    await page.getByLabel('Tool', { exact: true }).fill('READ_FI');
    await page.getByLabel('Session', { exact: true }).fill(session.slice(3).toUpperCase());
    await search.click();
    await page.waitForURL(/tool=read_file/);
    check(page.url().includes(`session=${session}`), `the session is found: ${page.url()}`);
    await page.locator('tbody tr', { hasText: 'read_file' }).waitFor();
    // A name that is not known is taken as it is.
    await page.getByLabel('Tool', { exact: true }).fill('no_such_tool');
    await search.click();
    await page.waitForURL(/tool=no_such_tool/);
    await page.getByText('No call matches.').waitFor();
  },

  async labels_of_the_axis_are_whole() {
    const session = await place.session();
    await place.call(session, 'calculate', { expression: '1' });
    const page = await open(place, 'charts', { width: 390 });
    const found = await page.waitForFunction(() => {
      const boxes = [...document.querySelectorAll('.tick')].map((tick) => tick.getBBox());
      const { width } = document.querySelector('.axis')?.getBoundingClientRect() ?? {};
      return boxes.length > 0 && { width, boxes: boxes.map(({ x, width: w }) => [x, x + w]) };
    });
    const { width, boxes } = await found.jsonValue();
    const text = JSON.stringify({ width, boxes });
    check(boxes.every(([from, to]) => from >= 0 && to <= width), `no label is cut: ${text}`);
    const apart = boxes.every(([from], index) => index === 0 || from > boxes[index - 1][1]);
    check(apart, `no label covers another: ${text}`);
  },

  async buttons_of_each_session_have_their_own_name() {
    // Of one token, so that the client is no name for a session.
    const authorization = `Bearer ${options.client}`;
    for (let made = 0; made < 2; made += 1) await send('POST', '/sessions', { authorization }, {});
    const page = await open(place, 'sessions');
    await page.locator('tbody tr').nth(1).waitFor();
    const names = await page.locator('tbody button').evaluateAll((buttons) =>
      buttons.map((button) => button.getAttribute('aria-label')),
    );
    check(names.length > 2 && new Set(names).size === names.length, `they differ: ${names}`);
    await page.setViewportSize({ width: 360, height: 800 });
    const out = await page.locator('tbody button').evaluateAll((buttons) => {
      const end = (element) => element.getBoundingClientRect().right;
      return buttons.filter((button) => end(button) > end(button.closest('tr'))).length;
    });
    check(out === 0, `no button leaves its card: ${out}`);
  },

  async running_call_has_no_output_so_far() {
    const page = await open(place);
    const session = await place.session();
    const ended = place.call(session, options.run, { command: 'sleep 61' });
    await page.waitForSelector(`${ALLOW}:not([aria-disabled])`);
    await page.locator(ALLOW).click();
    await page.waitForSelector(DONE);
    await page.keyboard.press('Escape');
    const card = page.locator('.card:not(.asks)', { hasText: 'sleep 61' });
    await card.getByRole('link', { name: options.run }).click();
    await page.getByText('No output so far.').waitFor();
    await page.getByRole('button', { name: 'Cancel the call' }).click();
    await ended;
    await page.getByText('No output so far.').waitFor({ state: 'detached' });
  },

  async left_page_ends_its_stream() {
    // Of a browser that keeps the pages that were left, as browsers do.
    const browser = await place.launch(['--disable-back-forward-cache']);
    const context = await browser.newContext({ storageState: place.state });
    const page = await place.page(context);
    await page.goto(`${options.url}/#/now`);
    await live(page);
    await page.evaluate(() => {
      window.addEventListener('pageshow', ({ persisted }) => {
        window.kept = persisted;
      });
    });
    check(place.wire.streams === 1, `one stream: ${place.wire.streams}`);
    await page.goto('about:blank');
    const left = performance.now();
    await until(() => place.wire.streams === 0, 'the stream ends');
    check(performance.now() - left < 5_000, 'it ends at once');
    // A page that was kept is not loaded again.
    await page.goBack({ waitUntil: 'commit' });
    await live(page);
    check(await page.evaluate(() => window.kept === true), 'the page was kept');
    check(place.wire.streams === 1, `one stream again: ${place.wire.streams}`);
    const { question } = await place.asked();
    await page.waitForSelector(ALLOW);
    await place.answer(question, 'deny');
    await browser.close();
  },
});

async function open(place, view = '', more = {}) {
  const page = await place.window(more);
  await page.goto(`${options.url}/#/${view}`);
  await live(page);
  return page;
}
