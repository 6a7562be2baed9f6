// Starts the console: signs in, keeps the stream of events, and shows the view of the address.

import { announce } from './announce.js';
import { get, post, whenSignedOut } from './api.js';
import { QuestionDialog } from './dialog.js';
import { byId, h, put } from './dom.js';
import { Frame } from './frame.js';
import { Live } from './live.js';
import { keepPageKey, pageKey, whenPageKeyChanges } from './page-key.js';
import { nothing } from './parts.js';
import { Progress } from './progress.js';
import { Questions } from './questions.js';
import { loginCode, parse } from './router.js';
import { Stage } from './stage.js';
import { view as call } from './views/call.js';
import { view as charts } from './views/charts.js';
import { view as history } from './views/history.js';
import { view as now } from './views/now.js';
import { view as plugins } from './views/plugins.js';
import { view as session } from './views/session.js';
import { view as sessions } from './views/sessions.js';
import { signedInAlready, signedOut } from './views/signed-out.js';

// A program that mounts the console in its own application has no login of the console.
const OTHER_LOGIN =
  'The application that serves this console has signed you in. Sign out of that application.';

const VIEWS = { now, history, call, charts, plugins, sessions, session };

const live = new Live();
const questions = new Questions(live);
const progress = new Progress(live);
const stage = new Stage(live);
const dialog = new QuestionDialog(questions, live, () => {
  // The address of a question is left with its dialog.
  if (parse(location.hash).name === 'question') location.replace('#/now');
  dialog.offer();
});
const app = {
  live,
  questions,
  progress,
  refresh: () => stage.refresh(),
  review: () => dialog.review(),
  ask: (id) => dialog.show(id),
  signOut: leave,
};
const frame = new Frame(app);
let signedIn = true;

function show() {
  if (!signedIn) return;
  const route = parse(location.hash);
  if (route.name === 'question' && route.id !== '') {
    frame.mark('now');
    stage.open(VIEWS.now, { name: 'now', id: '', parameters: {} }, app);
    dialog.show(route.id);
    return;
  }
  const view = Object.hasOwn(VIEWS, route.name) ? VIEWS[route.name] : null;
  frame.mark(route.name);
  if (view) stage.open(view, route, app);
  else
    stage.still(
      'Not found',
      nothing('There is no such page. ', h('a', { href: '#/now' }, 'What runs now')),
    );
}

/** Ends the login of this browser, in all tabs. */
async function leave() {
  try {
    await post(['logout']);
  } catch (error) {
    if (error.status === 404) throw new Error(OTHER_LOGIN);
    // Then the login has ended already.
    if (error.status !== 401) throw error;
  }
  keepPageKey(null);
  live.signOut();
  signOut({ left: true });
}

function signOut(reason) {
  if (!signedIn) return;
  signedIn = false;
  live.stop();
  questions.clear();
  document.querySelectorAll('dialog[open]').forEach((open) => open.close());
  frame.hide();
  const page = signedOut(reason);
  stage.still(page.title, page.content);
}

async function signIn(code) {
  // The code works once, and should not stay in the address or the history of the browser.
  history_.replaceState(null, '', location.pathname + location.search);
  put(byId('view'), h('p', { role: 'status' }, 'Signing in …'));
  try {
    const login = await post(['login'], { code });
    keepPageKey(login.page_key);
  } catch (error) {
    if (await hasLogin()) {
      frame.reveal();
      frame.mark('');
      live.start();
      const page = signedInAlready();
      stage.still(page.title, page.content);
      return;
    }
    signedIn = true;
    signOut({ error });
    return;
  }
  signedIn = true;
  location.replace('#/now');
  begin();
  announce('Signed in.');
}

/** Whether this browser is signed in, whatever became of a link. */
async function hasLogin() {
  if (pageKey() === null) return false;
  try {
    await get(['confirmations']);
    return true;
  } catch {
    return false;
  }
}

function begin() {
  frame.reveal();
  live.start();
  show();
}

const history_ = window.history;
whenSignedOut(() => signOut({}));
live.addEventListener('signed-out', () => signOut({ left: true }));
whenPageKeyChanges((key) => {
  if (key === null) signOut({ left: true });
  else if (!signedIn) {
    signedIn = true;
    begin();
  }
});
window.addEventListener('hashchange', () => {
  const code = loginCode(location.hash);
  if (code) signIn(code);
  else show();
});
byId('skip').addEventListener('click', (event) => {
  // The address of the view must stay.
  event.preventDefault();
  byId('view').focus();
});

const code = loginCode(location.hash);
if (code) signIn(code);
else begin();
