// The setup of the scenarios in drive.mjs: the options, the browser behind a proxy that can be cut,
// and the server's API with the browser's own login.

import http from 'node:http';
import { createRequire } from 'node:module';
import { readFileSync, mkdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-sync',
  '--disable-background-networking',
  '--disable-component-update',
];
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const MARKUP = '<img src=x onerror="window.evil=1"><b class="evil">bold</b>';
export const HOSTILE = `${MARKUP}\u202Egnp.exe\u202C\u0007\u001b[31m\u200B\u2066x\u2069`;
export const ALLOW = '#question[open] [data-answer=allow]';
export const ARMED = `${ALLOW}:not([aria-disabled])`;
export const OVER = '#question[open] .status .over';
export const DONE = '#question[open] .status .done';

export const { values: options } = parseArgs({
  options: {
    url: { type: 'string' },
    login: { type: 'string' },
    browser: { type: 'string', default: '/usr/bin/chromium' },
    only: { type: 'string' },
    shots: { type: 'string' },
    write: { type: 'string', default: 'write_file' },
    run: { type: 'string', default: 'shell' },
    client: { type: 'string' },
    operator: { type: 'string' },
    control: { type: 'boolean', default: false },
  },
});

/** A proxy between the browser and the server, so that their connection can be cut. */
export class Wire {
  #server = http.createServer((request, response) => this.#pass(request, response));
  #open = new Set();
  #streams = new Set();
  #cut = false;
  #asked = new Map();

  async listen() {
    await new Promise((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  /** Breaks every connection, and refuses new ones. */
  cut() {
    this.#cut = true;
    this.#open.forEach((request) => request.socket.destroy());
  }

  mend() {
    this.#cut = false;
  }

  /** Writes into the streams of events as if the server had. */
  say(text) {
    this.#streams.forEach((response) => response.write(text));
  }

  /** The number of open streams of events. */
  get streams() {
    return this.#streams.size;
  }

  /** Waits until nobody has asked for this path for a second. */
  async rest(path) {
    for (let seen = -1; seen !== this.#asked.get(path);) {
      seen = this.#asked.get(path);
      await pause(1000);
    }
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #pass(request, response) {
    if (this.#cut) return request.socket.destroy();
    this.#open.add(request);
    const { method, headers } = request;
    const url = new URL(request.url);
    const { pathname } = url;
    // Browsers know where names below `localhost` lead, and not every resolver does.
    if (url.hostname.endsWith('.localhost')) url.hostname = '127.0.0.1';
    this.#asked.set(pathname, 1 + (this.#asked.get(pathname) ?? 0));
    const upstream = http.request(url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
      if (/event-stream/.test(answer.headers['content-type'])) this.#streams.add(response);
    });
    upstream.on('error', () => request.socket.destroy());
    response.on('close', () => {
      this.#open.delete(request);
      this.#streams.delete(response);
      upstream.destroy();
    });
    return request.pipe(upstream);
  }
}

/** The browser, signed in, and the server's API. */
export class Place {
  errors = [];
  #files = 0;
  #proxy = '';
  wire = new Wire();

  async open() {
    this.#proxy = await this.wire.listen();
    this.browser = await this.launch();
  }

  /** Starts a browser behind the wire, without these switches of the driver. */
  launch(without = []) {
    return chromium.launch({
      executablePath: options.browser,
      args: FLAGS,
      // Scroll bars take room in most browsers.
      ignoreDefaultArgs: ['--hide-scrollbars', ...without],
      // Without this bypass rule a browser asks a proxy for no address of its own machine.
      proxy: { server: this.#proxy, bypass: '<-loopback>' },
    });
  }

  async close() {
    await this.browser.close();
    this.wire.close();
  }

  /** A window of its own. Its errors are collected. */
  async window(more = {}) {
    return this.page(await this.context(more));
  }

  /** A browser of its own, with its tabs to come. */
  context({ signedIn = true, scheme = 'light', width = 1280, height = 800 } = {}) {
    return this.browser.newContext({
      colorScheme: scheme,
      viewport: { width, height },
      reducedMotion: 'reduce',
      storageState: signedIn ? this.state : undefined,
    });
  }

  /** A tab. `page.asked` has the addresses of the streams of events that it has opened. */
  async page(context) {
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    page.asked = [];
    await page.addInitScript(() => {
      window.violations = [];
      document.addEventListener('securitypolicyviolation', (event) =>
        window.violations.push(`${event.violatedDirective} ${event.blockedURI}`),
      );
    });
    page.on('pageerror', (error) => this.errors.push(`uncaught: ${error.stack}`));
    page.on('request', (request) => {
      if (new URL(request.url()).pathname === '/events') page.asked.push(request.url());
      const { origin, port, hostname } = new URL(request.url());
      const usual = new URL(options.url);
      const isNamed = port === usual.port && hostname.endsWith('.localhost');
      if (origin !== usual.origin && !isNamed) {
        this.errors.push(`asked another place: ${request.url()}`);
      }
    });
    return page;
  }

  async signIn() {
    const page = await this.window({ signedIn: false });
    await page.goto(`${options.url}/#login=${options.login}`);
    await live(page);
    this.state = await page.context().storageState();
    return page;
  }

  /** Sends a request with the browser's login that does not pass the wire. */
  api(method, path, body) {
    return send(method, path, halves(this.state), body);
  }

  /** A code for one more login. */
  async code() {
    return (await this.link()).code;
  }

  /** The parts of a link for one more login: its origin and its code. */
  async link() {
    const authorization = `Bearer ${options.operator}`;
    return (await send('POST', '/logins', { authorization }, {})).body;
  }

  /** Sends a message of an MCP client. The answer has its status, its session and its text. */
  async mcp(message, headers = {}) {
    const answer = await fetch(`${options.url}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${options.client}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
    const session = answer.headers.get('mcp-session-id');
    return { status: answer.status, session, text: await answer.text() };
  }

  async session() {
    const { status, body } = await this.api('POST', '/sessions', {});
    check(status === 201, `a session is made: ${status} ${JSON.stringify(body)}`);
    return body.id;
  }

  /** Begins a call. The promise is the answer. */
  call(session, tool, input, more = {}) {
    return this.api('POST', `/sessions/${encodeURIComponent(session)}/calls`, {
      tool,
      input,
      ...more,
    });
  }

  /** Begins a call that asks. */
  async asked(session, path = `drive-${(this.#files += 1)}.txt`, content = 'one\ntwo\n') {
    const own = session ?? (await this.session());
    const ended = this.call(own, options.write, { path, content });
    for (let tries = 0; tries < 100; tries += 1) {
      const { body } = await this.api('GET', '/confirmations');
      const question = body.items.find((item) => item.session_id === own);
      if (question) return { session: own, ended, question };
      await pause(50);
    }
    throw new Error('the call does not ask');
  }

  answer({ session_id: session, request_id: id }, decision) {
    const path = `/sessions/${encodeURIComponent(session)}/turns/-/confirmations/${id}`;
    return this.api('POST', path, { decision });
  }

  /** Denies what a scenario that failed has left open; the next one would see it first. */
  async settle() {
    const { body } = await this.api('GET', '/confirmations');
    await Promise.all(body.items.map((question) => this.answer(question, 'deny')));
  }

  async restart() {
    const lines = createInterface({ input: process.stdin });
    console.log('restart');
    await new Promise((resolve) => {
      lines.once('line', resolve);
    });
    lines.close();
  }
}

/** Sends a request with these headers, as a page of the server would. */
export async function send(method, path, headers, body) {
  const answer = await fetch(options.url + path, {
    method,
    headers: {
      origin: new URL(options.url).origin,
      'sec-fetch-site': 'same-origin',
      'content-type': 'application/json',
      ...headers,
    },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? null : JSON.parse(text) };
}

/** The headers with both halves of the login of a browser in this state. */
export function halves({ cookies, origins }) {
  const stored = origins.flatMap(({ localStorage }) => localStorage);
  const key = stored.find(({ name }) => name === 'palisade page key /');
  return {
    cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; '),
    'palisade-page-key': key?.value ?? '',
  };
}

export function pause(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

export async function live(page) {
  await page.waitForSelector('#connection[data-state=live]');
}

/** Waits until it holds. */
export async function until(holds, promise) {
  const begun = performance.now();
  while (!(await holds())) {
    check(performance.now() - begun < 30_000, promise);
    await pause(20);
  }
}

/** Fails unless it holds. */
export function check(holds, promise) {
  if (!holds) throw new Error(`does not hold: ${promise}`);
}

/** Checks what must be true of the page in every state; returns nothing. */
export async function sound(page, name) {
  const found = await page.evaluate(() => {
    const bad = /(?![\t\n\uFE0F])[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029]/u;
    const texts = [];
    const walk = document.createTreeWalker(
      document,
      NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT,
    );
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (node.nodeType === Node.TEXT_NODE) texts.push(node.data);
      else texts.push(...[...node.attributes].map((attribute) => attribute.value));
    }
    const root = document.scrollingElement;
    return {
      deceptive: texts.filter((text) => bad.test(text)),
      markup: document.querySelectorAll('.evil, img[onerror], #view script, dialog script').length,
      ran: window.evil ?? null,
      violations: window.violations,
      wider: root.scrollWidth - root.clientWidth,
    };
  });
  check(
    found.deceptive.length === 0,
    `${name}: no deceptive character: ${JSON.stringify(found.deceptive)}`,
  );
  check(found.markup === 0 && found.ran === null, `${name}: text of others is no markup`);
  check(found.violations.length === 0, `${name}: nothing against the policy: ${found.violations}`);
  check(found.wider <= 0, `${name}: nothing is wider than the window (${found.wider})`);
  if (options.shots) {
    mkdirSync(options.shots, { recursive: true });
    await page.screenshot({ path: `${options.shots}/${name}.png` });
  }
}

/** Checks WCAG 2.2 AA, as far as axe can. */
export async function accessible(page, name) {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => {
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const result = await window.axe.run(document, { runOnly: tags });
    return result.violations.flatMap(({ id, help, nodes }) =>
      nodes.map((node) => `${id} (${help}): ${node.html.slice(0, 200)} ${node.failureSummary}`),
    );
  });
  check(violations.length === 0, `${name}: accessible:\n${violations.join('\n')}`);
}
