// Drives the console in headless Chromium against a running server, and fails if a promise does not
// hold. It needs the packages of package.json beside it:
//
//   node drive.mjs --url http://127.0.0.1:8700 --login CODE [--browser /usr/bin/chromium]
//     [--only NAME,NAME] [--shots DIRECTORY] [--write write_file] [--run shell] [--control]
//     [--client TOKEN] [--operator TOKEN]
//
// The workspace of the server gets a few files `drive-*`. With `--control` the script writes
// `restart` on a line of its own and goes on at the next line of its input. `question_expires`
// needs a server whose questions are open for at most 30 s; the others need more time.

import { clients } from './clients.mjs';
import { dialog } from './dialog.mjs';
import { accessible, check, live, options, Place, sound } from './place.mjs';
import { ALLOW, ARMED, DONE, HOSTILE, MARKUP, OVER } from './place.mjs';
import { ports } from './ports.mjs';
import { questions } from './questions.mjs';
import { tabs } from './tabs.mjs';
import { views } from './views.mjs';

const VIEWS = ['now', 'history', 'charts', 'plugins', 'sessions'];

const place = new Place();

const asked = (session, path, content) => place.asked(session, path, content);
/** The number of a session's newest call, when the journal has it: reads are written in batches. */
async function listed(session) {
  for (let tries = 0; tries < 100; tries += 1) {
    const { body } = await place.api('GET', `/calls?session=${encodeURIComponent(session)}`);
    if (body.items.length > 0) return body.items[0].id;
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
  throw new Error('the call is not in the history');
}

const answer = (question, decision) => place.answer(question, decision);
const succeeded = ({ body }) =>
  body.success === true || (body.error === null && body.output !== null);

async function open(view = '', more = {}) {
  const page = await place.window(more);
  await page.goto(`${options.url}/#/${view}`);
  await live(page);
  return page;
}

const SCENARIOS = {
  async link_signs_in_and_leaves_the_address() {
    const page = await place.signIn();
    check(!page.url().includes('login'), `the code is gone from ${page.url()}`);
    const cookies = await page.evaluate(() => document.cookie);
    check(cookies === '', 'no script can read the cookie');
    const other = await place.window({ signedIn: false });
    await other.goto(`${options.url}/#login=${options.login}`);
    await other.getByRole('heading', { name: 'The link does not work' }).waitFor();
    await sound(other, 'link-used');
    await accessible(other, 'a used link');
  },

  async stranger_is_told_how_to_sign_in() {
    const page = await place.window({ signedIn: false });
    await page.goto(options.url);
    await page.getByRole('heading', { name: 'Not signed in' }).waitFor();
    await page.getByText(`palisade console ${options.url}`).waitFor();
    await sound(page, 'signed-out');
    await accessible(page, 'signed out');
  },

  async question_is_allowed_by_keyboard() {
    const page = await open();
    const { ended } = await asked();
    await page.waitForSelector(ARMED);
    await sound(page, 'question');
    await page.keyboard.press('a');
    await page.keyboard.press('Enter');
    await page.waitForSelector(DONE);
    check(succeeded(await ended), 'the call succeeds');
    await page.keyboard.press('Escape');
    // The dialog closes in a task of the page, so that it is waited for.
    await page.locator('#question').waitFor({ state: 'hidden' });
  },

  async question_is_denied() {
    const page = await open();
    const { ended } = await asked();
    await page.waitForSelector(ALLOW);
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.waitForSelector(DONE);
    const { body } = await ended;
    check(JSON.stringify(body.error).includes('user_denied'), 'the call ends as user_denied');
  },

  async allowed_for_the_session_asks_no_second_time() {
    const page = await open();
    const { session, ended } = await asked();
    await page.waitForSelector(ARMED);
    await page.keyboard.press('s');
    await page.keyboard.press('Enter');
    await page.waitForSelector(DONE);
    check(succeeded(await ended), 'the first call succeeds');
    const second = await place.call(session, options.write, {
      path: 'drive-again.txt',
      content: 'x',
    });
    check(succeeded(second), 'the second runs without a question');
  },

  async focus_stays_in_the_dialog() {
    const page = await open();
    const { question } = await asked();
    await page.waitForSelector(ARMED);
    for (const key of ['Tab', 'Shift+Tab']) {
      for (let step = 0; step < 12; step += 1) {
        await page.keyboard.press(key);
        check(
          await page.evaluate(() => document.activeElement.closest('#question') !== null),
          `${key} stays inside`,
        );
      }
    }
    await page.keyboard.press('Escape');
    await page
      .getByRole('region', { name: 'Questions' })
      .getByRole('button', { name: 'Review' })
      .click();
    await page.waitForSelector(ALLOW);
    await answer(question, 'deny');
    await page.waitForSelector(OVER);
  },

  async typing_is_not_interrupted() {
    const page = await open('history');
    await page.getByLabel('Text', { exact: true }).click();
    const { question } = await asked();
    await page.getByRole('region', { name: 'Questions' }).waitFor();
    check(await page.locator('#question').isHidden(), 'no dialog over a field in use');
    await page.locator('#assertive', { hasText: 'question waits' }).waitFor({ state: 'attached' });
    await answer(question, 'deny');
  },

  async loser_of_two_answers_learns_what_won() {
    const pages = [await open(), await open()];
    const { ended } = await asked();
    await Promise.all(pages.map((page) => page.waitForSelector(ARMED)));
    // At once, and so that a button that is gone already counts as the later answer.
    await Promise.all(
      ['allow', 'deny'].map((name, index) =>
        pages[index].evaluate(
          (decision) => document.querySelector(`#question [data-answer=${decision}]`)?.click(),
          name,
        ),
      ),
    );
    await Promise.all(pages.map((page) => page.waitForSelector(`${DONE}, ${OVER}`)));
    const won = await Promise.all(pages.map((page) => page.locator(DONE).count()));
    check(won[0] + won[1] === 1, `one answer wins: ${won}`);
    check(succeeded(await ended) === (won[0] === 1), 'the call does what the winner said');
    const text = await pages[won[0]].locator(OVER).textContent();
    check(text.includes(won[0] ? 'allowed once' : 'denied'), `the loser reads: ${text}`);
    await sound(pages[won[0]], 'question-lost');
  },

  async answer_from_elsewhere_is_shown() {
    const page = await open();
    const { question } = await asked();
    await page.waitForSelector(ALLOW);
    await answer(question, 'deny');
    await page.locator(OVER, { hasText: 'denied' }).waitFor();
    await sound(page, 'question-elsewhere');
    await accessible(page, 'answered elsewhere');
    await page.goto(`${options.url}/#/question/${question.request_id}`);
    await page.locator(OVER, { hasText: 'denied' }).waitFor();
  },

  async question_expires() {
    const page = await open();
    const { question, ended } = await asked(null, undefined, 'late');
    if (question.valid_for_ms > 30_000) {
      await answer(question, 'deny');
      return `skipped: questions are open for ${question.valid_for_ms / 1000} s`;
    }
    await page.locator(OVER, { hasText: 'expired' }).waitFor({ timeout: 40_000 });
    await sound(page, 'question-expired');
    check(
      JSON.stringify((await ended).body.error).includes('confirmation_timeout'),
      'the call ends',
    );
    await page.keyboard.press('Escape');
    // A person who comes later learns that there was a question.
    await page.getByText(/^\d+ questions? ended without an answer in the last hour/).waitFor();
    await sound(page, 'now-missed');
    await accessible(page, 'a missed question');
    await page.getByRole('link', { name: 'Their calls' }).click();
    await page.waitForURL(/outcome=confirmation_timeout/);
    await page.locator('tbody tr', { hasText: 'confirmation timeout' }).first().waitFor();
    return '';
  },

  async reload_shows_the_question_again() {
    const page = await open();
    const { ended } = await asked();
    await page.waitForSelector(ALLOW);
    await page.reload();
    await page.waitForSelector(ARMED);
    await page.locator(ALLOW).click();
    await page.waitForSelector(DONE);
    check(succeeded(await ended), 'the call succeeds');
  },

  async lost_connection_comes_back_with_what_was_missed() {
    const page = await open();
    place.wire.cut();
    await page.getByRole('region', { name: 'Connection' }).waitFor();
    await sound(page, 'connection-lost');
    await accessible(page, 'connection lost');
    const { ended } = await asked();
    place.wire.mend();
    await page.waitForSelector(ARMED, { timeout: 40_000 });
    await page.locator(ALLOW).click();
    await page.waitForSelector(DONE);
    check(succeeded(await ended), 'the call succeeds');
    check(
      (await page.getByRole('region', { name: 'Connection' }).count()) === 0,
      'the banner is gone',
    );
  },

  async gap_in_the_journal_loads_everything_again() {
    const page = await open('plugins');
    await place.wire.rest('/plugins');
    const loads = page.waitForRequest(/\/plugins$/);
    place.wire.say('event: journal.gap\ndata: {"oldest":"1"}\n\n');
    await loads;
  },

  async restart_of_the_server_is_survived() {
    if (!options.control) return 'skipped: nobody restarts the server';
    const page = await open();
    await place.restart();
    await live(page);
    await page.goto(`${options.url}/#/history`);
    await page.locator('tbody tr').first().waitFor();
    return '';
  },

  async running_call_is_seen_and_cancelled() {
    const page = await open();
    const session = await place.session();
    const ended = place.call(session, options.run, { command: 'sleep 60' });
    await page.waitForSelector(ARMED);
    await page.locator(ALLOW).click();
    await page.waitForSelector(DONE);
    await page.keyboard.press('Escape');
    const card = page.locator('.card', { hasText: 'sleep 60' });
    await card.getByRole('button', { name: 'Cancel the call' }).click();
    check(
      JSON.stringify((await ended).body.error).includes('cancelled'),
      'the call ends as cancelled',
    );
    await card.waitFor({ state: 'detached' });
  },

  async session_is_closed_after_a_question() {
    const session = await place.session();
    const page = await open('sessions');
    const row = page.locator('tr', { hasText: session });
    await row.getByRole('button', { name: /^Close/ }).click();
    const dialog = page.getByRole('dialog', { name: `Close session ${session}?` });
    await sound(page, 'session-closing');
    await accessible(page, 'closing a session');
    await dialog.getByRole('button', { name: 'Keep it open' }).click();
    await row.getByRole('button', { name: `Close session ${session}` }).click();
    await dialog.getByRole('button', { name: 'Close the session' }).click();
    await row.getByText('closed').waitFor();
  },

  async history_is_filtered_and_linked() {
    const session = await place.session();
    await place.call(session, 'read_file', { path: 'no-such-file' });
    await place.call(session, 'no_such_tool', {});
    const page = await open('history');
    await page.getByLabel('Session', { exact: true }).fill(session);
    await page.getByLabel('Outcome').selectOption('not_found');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/outcome=not_found/);
    await page.getByRole('link', { name: 'no_such_tool' }).click();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'no_such_tool' }).waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'no_such_tool' }).waitFor();
    check((await page.locator('tbody tr').count()) === 1, 'one call matches');
  },

  async hostile_text_is_only_text() {
    const session = await place.session();
    await place.call(session, `no-${HOSTILE.slice(0, 60)}`, { [HOSTILE]: HOSTILE });
    const page = await open();
    const { question } = await asked(
      session,
      `drive-${MARKUP.slice(0, 9)}\u202Egnp`,
      `${HOSTILE}\n`.repeat(3000),
    );
    await page.waitForSelector(ARMED);
    await sound(page, 'hostile-question');
    await accessible(page, 'a hostile question');
    const more = page.locator('#question .more').first();
    while ((await more.count()) > 0) await more.click();
    await sound(page, 'hostile-question-whole');
    await answer(question, 'allow');
    await page.waitForSelector(OVER);
    await page.keyboard.press('Escape');
    const { body } = await place.api('GET', `/calls?session=${encodeURIComponent(session)}`);
    for (const view of [
      ...VIEWS,
      `session/${session}`,
      ...body.items.map((call) => `call/${call.id}`),
    ]) {
      await page.goto(`${options.url}/#/${view}`);
      await settled(page);
      await sound(page, `hostile-${view.replace('/', '-')}`);
    }
  },

  async views_are_accessible_in_each_scheme_and_width() {
    const session = await place.session();
    await place.call(session, 'read_file', { path: 'no-such-file' });
    const call = await listed(session);
    const { question } = await asked(session);
    // All views are looked at, so that one run shows everything that is wrong.
    const wrong = [];
    const look = async (page, name) => {
      await sound(page, name).catch((error) => wrong.push(error.message));
      await accessible(page, name).catch((error) => wrong.push(error.message));
    };
    for (const scheme of ['light', 'dark']) {
      for (const width of [360, 1280]) {
        const page = await open('', { scheme, width });
        await page.waitForSelector(ARMED);
        await look(page, `question-${scheme}-${width}`);
        await page.keyboard.press('Escape');
        for (const view of [...VIEWS, `session/${session}`, `call/${call}`]) {
          await page.goto(`${options.url}/#/${view}`);
          await settled(page);
          for (const closed of await page.locator('main summary').all()) await closed.click();
          await look(page, `${view.split('/')[0]}-${scheme}-${width}`);
        }
        await page.context().close();
      }
    }
    await answer(question, 'deny');
    check(wrong.length === 0, wrong.join('\n'));
  },
};

Object.assign(
  SCENARIOS,
  ...[questions, dialog, views, tabs, ports, clients].map((scenarios) => scenarios(place)),
);

async function settled(page) {
  await page.waitForSelector('.body:not([aria-busy])');
}

await place.open();
let failed = 0;
const only = options.only?.split(',');
const names = Object.keys(SCENARIOS).filter(
  (name, index) => index === 0 || !only || only.includes(name),
);
for (const name of names) {
  const begun = performance.now();
  try {
    place.errors.length = 0;
    const note = await SCENARIOS[name]();
    check(place.errors.length === 0, place.errors.join('\n'));
    console.log(`${name}: ${note || 'ok'} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`${name}: FAILED\n${error.stack}`);
    if (name === names[0]) break;
  } finally {
    place.wire.mend();
    const contexts = place.browser.contexts();
    await Promise.all(contexts.map((context) => context.close()));
    if (place.state) await place.settle();
  }
}
await place.close();
// Calls that nobody waits for any more would keep the process.
process.exit(failed === 0 ? 0 : 1);
