// The notices of the page about the server itself: that the connection is lost, or that it stops.
// The frame shows them above the view, and the dialog with a question inside itself, where they are
// seen.

const SLOW = 'The stream of events does not open.';
// A browser that lets no tabs share a stream keeps only six connections to one address.
const MANY = ' If the console is open in more than five tabs, close some.';
const LOST = 'The connection to the server is lost, so ';
const AGAIN = 'It connects again by itself.';
const STOPS = 'The server is stopping: it takes no new calls';

/** The notices of the frame: `{kind, label, text}`. */
export function pageNotices(live) {
  return [
    live.state === 'lost' && lost(`${LOST}this page may be out of date. ${AGAIN}`),
    live.state === 'slow' && lost(live.shared ? SLOW : SLOW + MANY),
    live.state === 'live' && live.stops && stops(`${STOPS}.`),
  ].filter(Boolean);
}

/** The notices inside the dialog with a question. */
export function questionNotices(live) {
  return [
    live.state === 'lost' && lost(`${LOST}no answer can be given. ${AGAIN}`),
    live.state === 'slow' && lost(`${SLOW} No answer can be given until it does.`),
    live.state === 'live' && live.stops && stops(`${STOPS}, and soon cancels those that wait.`),
  ].filter(Boolean);
}

const lost = (text) => ({ kind: 'lost', label: 'Connection', text });
const stops = (text) => ({ kind: 'draining', label: 'Server', text });
