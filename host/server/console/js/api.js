// Requests to the server, and what its errors are. Every answer is JSON.

import { HEADER, pageKey } from './page-key.js';

// The console can be mounted below any path: its scripts are in `console/js/` of that place.
const ROOT = new URL('../../', import.meta.url);
const PATIENCE_MS = 20_000;
const NO_ANSWER = { title: 'No answer', detail: 'The server does not answer.' };

/** An answer that is not a success, or no answer at all (`status` 0). */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `the server answered ${status}`);
    this.status = status;
    this.code = body.code ?? '';
    this.title = body.title ?? '';
    this.body = body;
  }
}

let onSignedOut = () => {};

/** Calls `act` whenever the server says that nobody is signed in. */
export function whenSignedOut(act) {
  onSignedOut = act;
}

/**
 * The server's address for programs. The console has a host of its own below `localhost`, which
 * browsers know, and not every program does.
 */
export function programUrl(path) {
  const url = new URL(path, ROOT);
  if (url.hostname.endsWith('.localhost')) url.hostname = '127.0.0.1';
  return url.href.replace(/\/$/, '');
}

/** The address of a path of the API. Every part is escaped; `undefined` parameters are left out. */
export function address(parts, parameters = {}) {
  const url = new URL(parts.map(encodeURIComponent).join('/'), ROOT);
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(name, value);
  }
  return url;
}

/** Sends a request with the page key; again, if another tab has signed in meanwhile. */
async function send(url, init) {
  const key = pageKey();
  const headers = key === null ? init.headers : { ...init.headers, [HEADER]: key };
  const response = await fetch(url, { ...init, credentials: 'same-origin', headers });
  return response.status === 401 && pageKey() !== key ? send(url, init) : response;
}

async function request(method, parts, { parameters, body, signal, accepts = [] } = {}) {
  const limit = AbortSignal.timeout(PATIENCE_MS);
  let response;
  try {
    response = await send(address(parts, parameters), {
      method,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    if (response.ok || accepts.includes(response.status)) {
      return response.status === 204 ? null : await response.json();
    }
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, NO_ANSWER);
  }
  throw await refusal(response, parts);
}

async function refusal(response, parts) {
  const said = await response.json().catch(() => ({}));
  if (response.status === 401 && parts[0] !== 'login') onSignedOut();
  return new Problem(response.status, said && typeof said === 'object' ? said : {});
}

/** Opens a stream of events, until `signal` ends it. */
export async function open(parts, parameters, signal) {
  let response;
  try {
    response = await send(address(parts, parameters), {
      cache: 'no-store',
      headers: { accept: 'text/event-stream' },
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Problem(0, NO_ANSWER);
  }
  if (response.ok) return response.body;
  throw await refusal(response, parts);
}

export const get = (parts, options) => request('GET', parts, options);
export const post = (parts, body = {}) => request('POST', parts, { body });
