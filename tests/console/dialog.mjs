// Scenarios of the dialog that asks: what it shows stays in sight, says what an answer does, and
// says when no answer can be given.

import { accessible, ALLOW, ARMED, check, DONE, live, options, sound, until } from './place.mjs';

const LINES = Array.from({ length: 450 }, (_, line) => `line ${line}`).join('\n');
const NOTICE = '#question[open] .notice';

export const dialog = (place) => ({
  async long_diff_scrolls_between_header_and_answers() {
    for (const [width, height] of [[1280, 900], [390, 844], [390, 400]]) {
      const page = await open(place, 'plugins', { width, height });
      const { question } = await place.asked(null, undefined, LINES);
      await page.waitForSelector(ARMED);
      await page.mouse.move(width / 2, height / 2);
      for (let turn = 0; turn < 8; turn += 1) await page.mouse.wheel(0, 4000);
      const name = `question-long-${width}-${height}`;
      await sound(page, name);
      const found = await page.evaluate(lookAtDialog);
      const size = `at ${width} x ${height}: ${JSON.stringify(found)}`;
      check(found.boxes.length <= 1, `at most one box scrolls ${size}`);
      check(found.page === 0, `the page behind stays ${size}`);
      check(found.right <= found.width, `no part is under the scroll bar ${size}`);
      if (height > 448) check(found.hidden.length === 0, `header and answers are seen ${size}`);
      if (height === 844) await accessible(page, name);
      await place.answer(question, 'deny');
      await page.context().close();
    }
  },

  async session_answer_says_which_calls_run_too() {
    const page = await open(place);
    const session = await place.session();
    const ends = ['drive-x.txt', 'drive-y.txt', 'drive-z.txt'].map((path) =>
      place.call(session, options.write, { path, content: 'x' }),
    );
    // Of another session, so that it waits on.
    const other = await place.asked();
    const also = page.locator('#question .also');
    await also.filter({ hasText: '2 other waiting calls of write_file' }).waitFor();
    await page.waitForSelector(ARMED);
    await sound(page, 'question-also');
    await page.getByRole('button', { name: 'Allow for this session' }).click();
    await page.locator(DONE, { hasText: '2 other waiting calls of write_file run too' }).waitFor();
    const results = await Promise.all(ends);
    check(results.every(({ body }) => body.success), 'the others run');
    await page.keyboard.press('n');
    await page.waitForSelector(ARMED);
    check((await also.textContent()) === '', 'no call of another session is counted');
    await place.answer(other.question, 'deny');
  },

  async next_question_passes_over_calls_that_run_too() {
    const page = await open(place);
    const session = await place.session();
    const ends = ['drive-u.txt', 'drive-v.txt', 'drive-w.txt'].map((path) =>
      place.call(session, options.write, { path, content: 'x' }),
    );
    const also = page.locator('#question .also');
    await also.filter({ hasText: '2 other waiting calls of write_file' }).waitFor();
    const other = await place.asked();
    await page.waitForSelector(ARMED);
    // In the page, so that the click comes before the list is loaded again.
    const clicked = page.evaluate(clickAtOnce, '.next');
    await page.getByRole('button', { name: 'Allow for this session' }).click();
    await clicked;
    await page.waitForSelector(ARMED);
    check((await also.textContent()) === '', 'the question is of the other session');
    const results = await Promise.all(ends);
    check(results.every(({ body }) => body.success), 'the calls run');
    await place.answer(other.question, 'deny');
  },

  async keys_are_explained_where_they_work() {
    const page = await open(place);
    // In the page, so that a slow machine clicks in the first second as well.
    const early = page.evaluate(clickAtOnce, '[data-answer=allow]');
    const { question } = await place.asked();
    const said = await early;
    check(said.includes('first second'), `a click says why it does nothing: ${said}`);
    await page.waitForSelector(ARMED);
    await until(
      async () => (await page.locator('#question .early').count()) === 0,
      'the text goes when the second is over',
    );
    const hint = page.locator('#question .hint');
    check(await hint.isVisible(), 'the hint is visible');
    const text = await hint.innerText();
    for (const word of ['first second', 'a, s', 'Enter']) {
      check(text.replace(/\s+/g, ' ').replace(/ ,/g, ',').includes(word), `the hint says ${word}`);
    }
    const back = await page.evaluate(() => {
      dispatchEvent(new Event('focus'));
      document.querySelector('#question [data-answer=allow]').click();
      return document.querySelector('#question .early')?.textContent ?? '';
    });
    check(back.includes('come to this window'), `the click that uncovers it allows nothing: ${back}`);
    const { question: second } = await place.asked();
    await page.keyboard.press('d');
    await page.keyboard.press('Enter');
    const denied = page.locator(`${DONE}.deny`, { hasText: 'Denied.' });
    await denied.waitFor();
    await sound(page, 'question-denied');
    await accessible(page, 'a denied question');
    const colours = await page.evaluate(() => {
      const of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
      const probe = document.createElement('i');
      document.body.append(probe);
      probe.style.color = of('--good');
      const good = getComputedStyle(probe).color;
      probe.remove();
      return [good, getComputedStyle(document.querySelector('#question .done')).color];
    });
    check(colours[0] !== colours[1], 'a denial is not green');
    await page.getByRole('heading', { name: '1 file not changed' }).waitFor();
    await page.keyboard.press('n');
    await page.waitForSelector(ARMED);
    check(question.request_id !== second.request_id, 'there are two questions');
    await place.answer(second, 'deny');
  },

  async question_says_that_the_connection_is_lost() {
    const page = await open(place);
    const { ended } = await place.asked();
    await page.waitForSelector(ARMED);
    place.wire.cut();
    await page.locator(NOTICE, { hasText: 'connection to the server is lost' }).waitFor();
    const left = page.locator('#question .left');
    await left.filter({ hasText: 'not connected' }).waitFor();
    const off = await page.locator('#question [data-answer]').evaluateAll((buttons) =>
      buttons.map((button) => button.getAttribute('aria-disabled')),
    );
    check(off.length === 3 && off.every((is) => is === 'true'), `no answer can be given: ${off}`);
    await page.getByRole('button', { name: 'Deny' }).click({ force: true });
    await sound(page, 'question-connection-lost');
    await accessible(page, 'a question without a connection');
    check((await page.locator('#question .problem').count()) === 0, 'a click sends nothing');
    place.wire.mend();
    await page.waitForSelector(ARMED, { timeout: 40_000 });
    await left.filter({ hasText: 'expires in' }).waitFor();
    check((await page.locator(NOTICE).count()) === 0, 'the notice is gone');
    await page.locator(ALLOW).click();
    await page.waitForSelector(DONE);
    check((await ended).body.success, 'the call succeeds');
  },

  async question_says_that_the_server_stops() {
    const page = await open(place);
    const { question } = await place.asked();
    await page.waitForSelector(ARMED);
    // As a server that is told to end; tests/tests/server/drain.rs tells one.
    place.wire.say('event: server.draining\ndata: {"event":"server.draining"}\n\n');
    await page.locator(NOTICE, { hasText: 'The server is stopping' }).waitFor();
    await page.locator('#question .left', { hasText: 'until the server stops' }).waitFor();
    check((await page.locator(ARMED).count()) === 1, 'it can still be answered');
    await sound(page, 'question-draining');
    await accessible(page, 'a question while the server stops');
    await page.keyboard.press('Escape');
    await page.getByRole('region', { name: 'Server' }).getByText('stopping').waitFor();
    await place.answer(question, 'deny');
  },

  async command_and_deletion_are_named_as_such() {
    const page = await open(place);
    const session = await place.session();
    await place.call(session, 'read_file', { path: 'none' });
    const command = place.call(session, options.run, { command: 'true' });
    await page.getByText('files that a command changes cannot be shown in advance').waitFor();
    await page.getByRole('button', { name: 'Deny' }).click();
    await command;
    await page.waitForSelector(DONE);
    await page.keyboard.press('Escape');
    await page.locator('#question').waitFor({ state: 'hidden' });
    const { ended } = await place.asked(null, 'drive-gone.txt');
    await page.waitForSelector(ARMED);
    await page.locator(ALLOW).click();
    await page.waitForSelector(DONE);
    await ended;
    await page.keyboard.press('Escape');
    await page.locator('#question').waitFor({ state: 'hidden' });
    const gone = place.call(session, 'delete_file', { path: 'drive-gone.txt' });
    await page.getByRole('heading', { name: '1 file would be deleted' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.card', { hasText: 'Would change or delete' }).waitFor();
    await page.getByRole('button', { name: 'Review and answer' }).click();
    await page.getByRole('button', { name: 'Deny' }).click();
    check((await gone).body.success === false, 'nothing is deleted');
  },
});

async function open(place, view = '', more = {}) {
  const page = await place.window(more);
  await page.goto(`${options.url}/#/${view}`);
  await live(page);
  return page;
}

/** Runs in the page: clicks a button as soon as it is there, and returns the status after it. */
function clickAtOnce(selector) {
  const dialog = document.querySelector('#question');
  return new Promise((resolve) => {
    new MutationObserver((changes, observer) => {
      const button = dialog.querySelector(selector);
      if (!button) return;
      observer.disconnect();
      button.click();
      resolve(dialog.querySelector('.status').textContent);
    }).observe(dialog, { childList: true, subtree: true });
  });
}

/** Runs in the page: which boxes of the dialog scroll, and what is out of sight. */
function lookAtDialog() {
  const dialog = document.querySelector('#question');
  const scrolls = (element) =>
    element.scrollHeight > element.clientHeight + 1 &&
    ['auto', 'scroll'].includes(getComputedStyle(element).overflowY);
  const isSeen = (element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= window.innerHeight + 1;
  };
  const fixed = dialog.querySelectorAll('header, footer, footer button');
  return {
    boxes: [dialog, ...dialog.querySelectorAll('*')].filter(scrolls).map((box) => box.className),
    hidden: [...fixed].filter((part) => !isSeen(part)).map((part) => part.textContent),
    moved: dialog.scrollTop,
    page: document.scrollingElement.scrollTop,
    right: dialog.getBoundingClientRect().right,
    width: document.documentElement.clientWidth,
  };
}
