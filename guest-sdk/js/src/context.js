/** The context of a call: its properties, and the messages that a tool can send to the host. */

import { Cancelled } from './errors.js';
import { shown } from './globals.js';
import { located } from './positions.js';

/**
 * The second argument of a tool's function. Its methods never fail and grant nothing. The host
 * limits what they send: a message to 4 KiB, all log messages of a call to 256 KiB, all emitted
 * chunks to 1 MiB.
 */
export class Context {
  #call;
  #host;
  #end;
  #modified = [];

  constructor(call, host) {
    this.#call = call;
    this.#host = host;
    this.#end = Date.now() + call.remainingMs;
  }

  /** Writes to the host's log, under the ID of the call. The model does not see it. */
  log(level, message) {
    this.#host.log(level, located(shown(message)));
  }

  /** Logs a detail for debugging the tool. */
  debug(message) {
    this.log('debug', message);
  }

  /** Logs information. */
  info(message) {
    this.log('info', message);
  }

  /** Logs a problem that does not stop the tool. */
  warn(message) {
    this.log('warn', message);
  }

  /** Logs a failure. */
  error(message) {
    this.log('error', message);
  }

  /** Reports progress: `done` of `total`, in any unit. Values should grow. */
  progress(done, total = null, message = null) {
    this.#host.progress(done, total, message);
  }

  /** Shows a part of the output before the call has ended. The model reads only the result. */
  emit(chunk) {
    this.#host.emit(String(chunk));
  }

  /**
   * True if the caller has cancelled the call. A tool that polls has 25 ms from then on to clean
   * up. A tool that never polls is stopped.
   */
  get cancelled() {
    return this.#host.cancelled();
  }

  /** Stops a loop of a cancelled call, by throwing {@link Cancelled}. */
  checkpoint() {
    if (this.cancelled) throw new Cancelled();
  }

  /** Records a file that the tool changed, relative to the workspace. */
  modified(path) {
    this.#modified.push(String(path));
  }

  /** The ID of this call in results, events and logs. */
  get callId() {
    return this.#call.callId;
  }

  /** The conversation that the call belongs to, or null. */
  get sessionId() {
    return this.#call.sessionId ?? null;
  }

  /** The turn within the conversation, or null. */
  get turnId() {
    return this.#call.turnId ?? null;
  }

  /** The milliseconds left before the deadline of the call. */
  get remainingMs() {
    return Math.max(0, this.#end - Date.now());
  }

  /** The value that the caller passes along. The host does not read it. */
  get caller() {
    return JSON.parse(this.#call.context || '{}');
  }

  /** The metadata of the call, usually empty. */
  get metadata() {
    return JSON.parse(this.#call.metadata || '{}');
  }

  /** The files that the tool has recorded as changed. */
  get filesModified() {
    return [...this.#modified];
  }
}
