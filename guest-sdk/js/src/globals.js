/** The globals that packages expect of a JavaScript engine and QuickJS has not. */

/**
 * Defines what is missing.
 *
 * @param {(level: string, message: string) => void} log Where the console goes.
 * @param {(length: number) => Uint8Array} randomBytes The randomness of the call.
 */
export function defineGlobals(log, randomBytes) {
  globalThis.console ??= consoleTo(log);
  globalThis.TextEncoder ??= Encoder;
  globalThis.TextDecoder ??= Decoder;
  globalThis.structuredClone ??= (value) => (value === undefined ? value : JSON.parse(JSON.stringify(value)));
  globalThis.crypto ??= cryptoWith(randomBytes);
  // The engine's own generator has its state from the build, and so repeats itself in every call.
  Math.random = () => random(randomBytes);
}

/** Forgets the randomness of the build, so that no call begins with it. */
export function forgetRandomness() {
  pool = new Uint32Array(0);
  at = 0;
}

let pool = new Uint32Array(0);
let at = 0;

function random(randomBytes) {
  if (at + 2 > pool.length) {
    pool = new Uint32Array(randomBytes(256).slice().buffer);
    at = 0;
  }
  const [high, low] = [pool[at] >>> 5, pool[at + 1] >>> 6];
  at += 2;
  return (high * 2 ** 26 + low) / 2 ** 53;
}

function consoleTo(log) {
  const at = (level) => (...values) => log(level, values.map(shown).join(' '));
  const made = { log: at('info'), info: at('info'), debug: at('debug'), warn: at('warn'), error: at('error') };
  return { ...made, trace: at('debug'), group() {}, groupEnd() {}, time() {}, timeEnd() {}, assert() {} };
}

/** Returns a value as a text of the log. */
export function shown(value) {
  if (typeof value === 'string') return value;
  if (value instanceof Error) return value.stack ? `${value}\n${value.stack}` : String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

function cryptoWith(randomBytes) {
  const getRandomValues = (array) => {
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(randomBytes(array.byteLength));
    return array;
  };
  const randomUUID = () => {
    const bytes = getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  };
  return { getRandomValues, randomUUID };
}

// As many arguments as a call of a function may have, with a margin.
const CHUNK = 8192;

/** Writes UTF-8. */
class Encoder {
  encoding = 'utf-8';

  encode(text = '') {
    const whole = String(text).toWellFormed();
    const bytes = new Uint8Array(whole.length * 3);
    let length = 0;
    for (let at = 0; at < whole.length; at += 1) {
      let code = whole.charCodeAt(at);
      if (code < 0x80) {
        bytes[length++] = code;
        continue;
      }
      if (code < 0x800) {
        bytes[length++] = 0xc0 | (code >> 6);
      } else {
        if (code >= 0xd800 && code < 0xdc00) {
          at += 1;
          code = 0x10000 + ((code - 0xd800) << 10) + (whole.charCodeAt(at) - 0xdc00);
          bytes[length++] = 0xf0 | (code >> 18);
          bytes[length++] = 0x80 | ((code >> 12) & 0x3f);
        } else {
          bytes[length++] = 0xe0 | (code >> 12);
        }
        bytes[length++] = 0x80 | ((code >> 6) & 0x3f);
      }
      bytes[length++] = 0x80 | (code & 0x3f);
    }
    return bytes.slice(0, length);
  }
}

class Decoder {
  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`the encoding ${label} is not supported`);
    Object.assign(this, { encoding: 'utf-8', fatal, ignoreBOM });
  }

  decode(input = new Uint8Array(0)) {
    const bytes = input instanceof Uint8Array ? input : new Uint8Array(input.buffer ?? input);
    const text = decodeFast(bytes) ?? decodeSlow(bytes, this.fatal);
    return this.ignoreBOM || !text.startsWith('\ufeff') ? text : text.slice(1);
  }
}

/** Decodes with functions that the engine has in C. Returns undefined if the bytes are no UTF-8. */
function decodeFast(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += CHUNK) parts.push(String.fromCharCode.apply(null, bytes.subarray(at, at + CHUNK)));
  const binary = parts.join('');
  if (!/[\x80-\xff]/.test(binary)) return binary;
  try {
    return decodeURIComponent(escape(binary));
  } catch {
    return undefined;
  }
}

/** Decodes bytes that are no UTF-8 throughout. */
function decodeSlow(bytes, fatal) {
  if (fatal) throw new TypeError('the bytes are no UTF-8');
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const [code, length] = decodeOne(bytes, at);
    text += String.fromCodePoint(code < 0 ? 0xfffd : code);
    at += length;
  }
  return text;
}

/** Returns the code point at an index, or -1, and the number of its bytes. */
function decodeOne(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return [first, 1];
  const [size, least, bits] =
    first >= 0xf0 && first < 0xf5 ? [4, 0x10000, first & 0x07]
    : first >= 0xe0 && first < 0xf0 ? [3, 0x800, first & 0x0f]
    : first >= 0xc2 && first < 0xe0 ? [2, 0x80, first & 0x1f]
    : [0, 0, 0];
  let code = bits;
  for (let next = 1; next < size; next += 1) {
    const byte = bytes[at + next];
    if (byte === undefined || (byte & 0xc0) !== 0x80) return [-1, next];
    code = (code << 6) | (byte & 0x3f);
  }
  const isWhole = size > 0 && code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isWhole ? [code, size] : [-1, Math.max(1, size)];
}
