// The page key: the half of a login that this origin stores. The other half is a cookie, which the
// browser hides from scripts and sends to each port of this host. The storage of an origin is read
// by the pages of its own port only.

const NAME = `palisade page key ${new URL('../../', import.meta.url).pathname}`;
/** The header that has the page key. */
export const HEADER = 'palisade-page-key';

// In a browser that stores nothing, a login ends with its page.
let unstored = null;

/** The page key of this browser, or null if nobody has signed in. */
export function pageKey() {
  try {
    return localStorage.getItem(NAME) ?? unstored;
  } catch {
    return unstored;
  }
}

/** Keeps the page key of a login, or forgets the last one for `null`. */
export function keepPageKey(key) {
  unstored = key;
  try {
    if (key === null) localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, key);
  } catch {
    // The page has it.
  }
}

/** Calls `act` with the page key, or with null, when another tab has signed in or out. */
export function whenPageKeyChanges(act) {
  window.addEventListener('storage', ({ key }) => {
    // Without a name, everything was removed.
    if (key !== NAME && key !== null) return;
    unstored = null;
    act(pageKey());
  });
}
