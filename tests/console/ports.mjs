// Scenarios with a server at another port of the same host, which belongs to somebody else. The
// browser sends the console's cookie to it.

import http from 'node:http';
import { ARMED, check, halves, live, options, OVER, send, until } from './place.mjs';

export const ports = (place) => ({
  async cookie_that_another_port_gets_opens_nothing() {
    const context = await place.context();
    const console_ = await place.page(context);
    await console_.goto(`${options.url}/#/now`);
    await live(console_);
    const other = await listen();
    const page = await context.newPage();
    await page.goto(other.url);
    const { cookie } = other.headers;
    const { cookie: own, 'palisade-page-key': key } = halves(place.state);
    check(cookie === own, `the browser sends the cookie to the other port: ${cookie}`);
    check(!JSON.stringify(other.headers).includes(key), 'but not the page key');
    const stored = await page.evaluate(() => Object.values(localStorage));
    check(stored.length === 0, `nor can a page of the other port read it: ${stored}`);
    const { question, ended } = await place.asked();
    const before = (await place.api('GET', '/sessions')).body.items.length;
    const { session_id: session, request_id: id } = question;
    for (const [method, path, body] of [
      ['GET', '/confirmations'],
      ['GET', '/events'],
      ['GET', '/sessions'],
      ['POST', '/sessions', {}],
      ['POST', '/logins', {}],
      ['POST', '/logout', {}],
      ['POST', `/sessions/${session}/turns/-/confirmations/${id}`, { decision: 'allow' }],
    ]) {
      const { status, body: said } = await send(method, path, { cookie }, body);
      const refused = status === 401 && said.code === 'page_key_needed';
      check(refused, `the other server is refused ${method} ${path}: ${status}`);
    }
    check((await place.api('GET', '/sessions')).body.items.length === before, 'no session is made');
    await console_.waitForSelector(ARMED);
    await place.answer(question, 'deny');
    await console_.waitForSelector(OVER);
    check((await ended).body.success === false, 'the call was not allowed');
    other.close();
  },

  async console_has_a_host_that_no_other_server_knows() {
    const { origin, code } = await place.link();
    check(/^http:\/\/[0-9a-f]{32}\.localhost:\d+$/.test(origin), `it is a name: ${origin}`);
    const context = await place.context({ signedIn: false });
    const page = await place.page(context);
    await page.goto(`${origin}/#login=${code}`);
    await live(page);
    const cookies = await context.cookies();
    const host = new URL(origin).hostname;
    check(cookies.every(({ domain }) => domain === host), 'the cookie is of that host');
    const { question } = await place.asked();
    await page.waitForSelector(ARMED);
    await place.answer(question, 'deny');
    await page.waitForSelector(OVER);
    // The storage of another server under the usual address has no login, and no page key.
    const usual = await place.page(context);
    await usual.goto(options.url);
    await usual.getByText(`palisade console ${options.url}`).waitFor();
    const stored = await usual.evaluate(() => Object.values(localStorage));
    check(stored.length === 0, `nothing is stored there: ${stored}`);
  },

  async sign_in_in_one_tab_reaches_a_tab_that_waits() {
    const context = await place.context({ signedIn: false });
    const waiting = await place.page(context);
    await waiting.goto(`${options.url}/#/history`);
    await waiting.getByRole('heading', { name: 'Not signed in' }).waitFor();
    const second = await place.page(context);
    for (const round of [1, 2]) {
      await second.goto('about:blank');
      await second.goto(`${options.url}/#login=${await place.code()}`);
      await live(second);
      await live(waiting);
      await waiting.getByRole('heading', { name: 'History' }).waitFor();
      await until(() => place.wire.streams === 1, `one stream in round ${round}`);
    }
  },
});

/** A server of somebody else at another port of the host. It notes what a browser sends it. */
async function listen() {
  const noted = {};
  const server = http.createServer((request, response) => {
    if (request.url === '/') noted.headers = request.headers;
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><title>another server</title>');
  });
  const host = new URL(options.url).hostname;
  await new Promise((resolve) => {
    server.listen(0, host, resolve);
  });
  noted.url = `http://${host}:${server.address().port}/`;
  noted.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return noted;
}
