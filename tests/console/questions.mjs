// Scenarios of the dialog that asks: nothing is allowed by accident, and no question stays hidden.

import { accessible, ALLOW, ARMED, check, DONE, live, options, OVER, sound } from './place.mjs';

export const questions = (place) => ({
  async nothing_is_allowed_by_accident() {
    const page = await open(place);
    const { question } = await place.asked();
    const type = async () => {
      for (const key of ['Enter', 'Space', 'Enter']) await page.keyboard.press(key);
    };
    await page.waitForSelector(ALLOW);
    await type();
    await page.waitForSelector(ARMED);
    await type();
    await page.keyboard.press('a');
    const { body } = await place.api('GET', `/confirmations/${question.request_id}`);
    check(body.resolution === null, 'keys that come by chance answer nothing');
    await place.answer(question, 'deny');
    await page.waitForSelector(OVER);
    // The next question takes the place of one that was answered elsewhere.
    const { question: second } = await place.asked();
    await page.waitForSelector(ALLOW);
    // As the second click of a double click, where the button has just appeared.
    await page.locator(ALLOW).evaluate((button) => button.click());
    await page.waitForSelector(ARMED);
    const now = await place.api('GET', `/confirmations/${second.request_id}`);
    check(now.body.resolution === null, 'a click as the question appears answers nothing');
    await place.answer(second, 'deny');
  },

  async answered_question_is_not_offered_again() {
    const page = await open(place);
    await place.asked();
    // The list of open questions is late: it still has what has just been answered.
    const { body } = await place.api('GET', '/confirmations');
    await page.route('**/confirmations', (route) => route.fulfill({ json: body }));
    await page.waitForSelector(ARMED);
    await page.locator(ALLOW).click();
    await page.waitForSelector(DONE);
    await page.keyboard.press('Escape');
    await page.locator('#question').waitFor({ state: 'hidden' });
  },

  async question_that_was_over_when_it_appeared_makes_room() {
    const page = await open(place);
    // The page learns of the question only when it is answered.
    let answered = () => {};
    const wait = new Promise((resolve) => {
      answered = resolve;
    });
    await page.route('**/confirmations/*', (route) => wait.then(() => route.continue()));
    const first = await place.asked(null, 'drive-over.txt');
    await page.getByRole('heading', { name: 'Loading the question' }).waitFor();
    await place.answer(first.question, 'deny');
    answered();
    await page.locator(OVER, { hasText: 'denied' }).waitFor();
    const second = await place.asked(null, 'drive-room.txt');
    await page.locator('#question .content', { hasText: 'drive-room.txt' }).waitFor();
    await place.answer(second.question, 'deny');
    await page.waitForSelector(OVER);
  },

  async next_question_is_offered_after_an_answer_elsewhere() {
    const page = await open(place);
    const shows = (path) => page.locator('#question .content', { hasText: path }).waitFor();
    const first = await place.asked(null, 'drive-first.txt');
    await shows('drive-first.txt');
    const second = await place.asked(null, 'drive-second.txt');
    await place.answer(first.question, 'deny');
    await shows('drive-second.txt');
    await page.locator('#question .before', { hasText: 'write_file' }).waitFor();
    await page.locator('#question .before', { hasText: 'denied by operator' }).waitFor();
    await sound(page, 'question-next');
    await accessible(page, 'the next question');
    // Without another question the dialog says what happened, until one comes.
    await place.answer(second.question, 'allow');
    await page.locator(OVER, { hasText: 'allowed once' }).waitFor();
    const third = await place.asked(null, 'drive-third.txt');
    await shows('drive-third.txt');
    await page.waitForSelector(ARMED);
    // A question that somebody has put off is not offered again, and an own answer is read first.
    await page.keyboard.press('Escape');
    const fourth = await place.asked(null, 'drive-fourth.txt');
    await shows('drive-fourth.txt');
    await place.answer(fourth.question, 'deny');
    await page.locator(OVER, { hasText: 'denied' }).waitFor();
    await page.getByRole('button', { name: 'Next question' }).click();
    await shows('drive-third.txt');
    // The same for a question that was opened by its address.
    const fifth = await place.asked(null, 'drive-fifth.txt');
    const other = await open(place, `question/${third.question.request_id}`);
    await other.waitForSelector(ALLOW);
    await place.answer(third.question, 'deny');
    await other.locator('#question .content', { hasText: 'drive-fifth.txt' }).waitFor();
    await place.answer(fifth.question, 'deny');
    await other.waitForSelector(OVER);
  },
});

async function open(place, view = '') {
  const page = await place.window();
  await page.goto(`${options.url}/#/${view}`);
  await live(page);
  return page;
}
