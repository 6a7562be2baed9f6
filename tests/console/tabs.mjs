// Scenarios with several tabs of one browser, which share one stream of events.

import { accessible, ARMED, check, DONE, live, options, OVER, sound, until } from './place.mjs';
import { halves, send } from './place.mjs';

// More than the connections that a browser has to one address.
const MANY = 8;

export const tabs = (place) => ({
  async eight_tabs_share_one_stream() {
    const pages = await open(place, MANY);
    check(place.wire.streams === 1, `one stream: ${place.wire.streams}`);
    const { ended } = await place.asked();
    await Promise.all(pages.map((page) => page.waitForSelector(ARMED)));
    await pages[MANY - 1].keyboard.press('a');
    await pages[MANY - 1].keyboard.press('Enter');
    await pages[MANY - 1].waitForSelector(DONE);
    check((await ended).body.success, 'the call succeeds');
    const others = pages.slice(0, -1);
    await Promise.all(
      others.map((page) => page.locator(OVER, { hasText: 'allowed once' }).waitFor()),
    );
    await Promise.all(pages.map((page) => page.reload().then(() => live(page))));
    await until(() => place.wire.streams === 1, 'one stream after all are loaded again');
  },

  async closed_leader_hands_over_without_loss() {
    const pages = await open(place, MANY, recordEvents);
    const session = await place.session();
    const made = [];
    let more = true;
    const calls = (async () => {
      while (more) {
        const id = `handed-${made.length}`;
        await place.call(session, 'calculate', { expression: '1' }, { id });
        made.push(id);
      }
    })();
    // Three times, so that the last leader has been led by two others.
    let left = pages;
    for (let round = 1; round <= 3; round += 1) {
      await until(() => made.length >= 40 * round, 'calls are made');
      const leader = left.find((page) => page.asked.length > 0);
      check(leader !== undefined, 'one tab has the stream');
      left = left.filter((page) => page !== leader);
      await leader.close();
      await until(() => left.some((page) => page.asked.length > 0), 'another tab has the stream');
    }
    await until(() => made.length >= 160, 'calls are made');
    more = false;
    await calls;
    // As a leader that has not heard what the others have.
    place.wire.say('id: 1\nevent: tool.called\ndata: {"tool_use_id": "handed-0"}\n\n');
    await place.call(session, 'calculate', { expression: '1' }, { id: 'handed-last' });
    made.push('handed-last');
    const joined = left.map((page) => page.asked).flat();
    check(
      joined.every((url) => /[?&]after=[0-9]+$/.test(url)),
      `the next leader goes on behind the last event: ${joined}`,
    );
    const wanted = made.flatMap((id) => [`tool.called ${id}`, `tool.completed ${id}`]);
    for (const page of left) {
      const seen = () => page.evaluate(() => window.seen);
      await until(async () => (await seen()).includes(wanted.at(-1)), 'the last event comes');
      const counts = new Map();
      for (const event of await seen()) counts.set(event, 1 + (counts.get(event) ?? 0));
      const wrong = wanted.filter((event) => counts.get(event) !== 1);
      check(wrong.length === 0, `each event comes once: ${wrong.length} of ${wanted.length} not`);
    }
    check(place.wire.streams === 1, `one stream: ${place.wire.streams}`);
  },

  async sleeping_leader_is_replaced() {
    const pages = await open(place, 2);
    const leader = pages.find((page) => page.asked.length > 0);
    const other = pages.find((page) => page !== leader);
    const devtools = await leader.context().newCDPSession(leader);
    await devtools.send('Debugger.enable');
    await devtools.send('Debugger.pause');
    // As if somebody looked at the other tab again.
    await other.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await until(() => other.asked.length > 0, 'the other tab opens a stream');
    const { question } = await place.asked();
    await other.waitForSelector(ARMED);
    await devtools.send('Debugger.resume');
    await until(() => place.wire.streams === 1, 'the leader gives its stream up');
    await leader.waitForSelector(ARMED);
    await place.answer(question, 'deny');
    await Promise.all(pages.map((page) => page.waitForSelector(OVER)));
  },

  async tabs_without_locks_have_a_stream_each() {
    const pages = await open(place, 2, () => delete Navigator.prototype.locks);
    check(place.wire.streams === 2, `a stream each: ${place.wire.streams}`);
    const { question } = await place.asked();
    await Promise.all(pages.map((page) => page.waitForSelector(ARMED)));
    await place.answer(question, 'deny');
    await Promise.all(pages.map((page) => page.waitForSelector(OVER)));
  },

  async sign_out_ends_the_login_in_all_tabs() {
    const context = await place.context({ signedIn: false });
    const first = await place.page(context);
    await first.goto(`${options.url}/#login=${await place.code()}`);
    await live(first);
    const second = await place.page(context);
    await second.goto(`${options.url}/#/history`);
    await live(second);
    const login = halves(await context.storageState());
    const asks = async () => (await send('GET', '/confirmations', login)).status;
    check((await asks()) === 200, 'the login counts');
    await second.getByRole('button', { name: 'Sign out' }).click();
    for (const page of [first, second]) {
      await page.getByRole('heading', { name: 'Signed out' }).waitFor();
      await page.getByText(`palisade console ${options.url}`).waitFor();
      check(await page.getByRole('button', { name: 'Sign out' }).isHidden(), 'nobody is there');
    }
    check((await asks()) === 401, 'the login has ended at the server');
    check((await context.cookies()).length === 0, 'the cookie is gone');
    check((await first.evaluate(() => localStorage.length)) === 0, 'the page key is gone');
    check(place.wire.streams === 0, `no stream is left: ${place.wire.streams}`);
    await sound(first, 'signed-out-again');
    await accessible(first, 'signed out again');
    await second.goto(`${options.url}/#login=${await place.code()}`);
    for (const page of [second, first]) {
      await live(page);
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
    }
  },

  async failed_sign_out_says_so() {
    const [page] = await open(place, 1);
    await page.route('**/logout', (route) => route.abort());
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('region', { name: 'Sign-out' }).getByText('still signed in').waitFor();
    await sound(page, 'sign-out-failed');
    await accessible(page, 'a failed sign-out');
    check((await page.locator('#connection').textContent()) === 'Live', 'it goes on');
  },
});

/** Opens this many tabs of one browser, and waits until all of them are live. */
async function open(place, count, prepare = () => {}) {
  const context = await place.context();
  await context.addInitScript(prepare);
  const pages = [];
  for (let number = 0; number < count; number += 1) pages.push(await place.page(context));
  await Promise.all(pages.map((page) => page.goto(`${options.url}/#/now`)));
  await Promise.all(pages.map((page) => live(page)));
  return pages;
}

/** Notes the events that the page hears, each with its call. */
function recordEvents() {
  window.seen = [];
  const { dispatchEvent } = EventTarget.prototype;
  EventTarget.prototype.dispatchEvent = function (event) {
    const { name, data } = event.detail ?? {};
    if (event.type === 'event' && data) window.seen.push(`${name} ${data.tool_use_id}`);
    return dispatchEvent.call(this, event);
  };
}
