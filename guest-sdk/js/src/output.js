/** The values that a tool returns: blocks, outputs, and the conversion of other values to them. */

const MAGIC = [
  [[0x89, 0x50, 0x4e, 0x47], 'image/png'],
  [[0xff, 0xd8, 0xff], 'image/jpeg'],
  [[0x47, 0x49, 0x46, 0x38], 'image/gif'],
  [[0x4f, 0x67, 0x67, 0x53], 'audio/ogg'],
  [[0x66, 0x4c, 0x61, 0x43], 'audio/flac'],
];
const RIFF = { WEBP: 'image/webp', WAVE: 'audio/wav' };

/** One block of an output, in the form of the contract. */
class Block {
  constructor(tag, val) {
    this.tag = tag;
    this.val = val;
  }
}

/** Text for the model. */
export const text = (value) => new Block('text', String(value));

/** One JSON value. */
export const json = (value) => new Block('json', stringify(value));

/** An image. The media type may be left out for PNG, JPEG, GIF and WebP. */
export const image = (data, mime) => new Block('image', { mime: mime ?? known(data, 'image'), data });

/** Audio. The media type may be left out for WAV, Ogg and FLAC. */
export const audio = (data, mime) => new Block('audio', { mime: mime ?? known(data, 'audio'), data });

/** A whole document, as text or bytes. The URI is a name that the host never follows. */
export const resource = (uri, body, mime = null) =>
  new Block('resource', {
    uri,
    mime,
    body: typeof body === 'string' ? { tag: 'text', val: body } : { tag: 'bytes', val: body },
  });

/** A document, by reference. */
export const link = (uri, name, mime = null) => new Block('link', { uri, name, mime });

/** The result of a tool that ran to its end. */
export class Output {
  /**
   * @param {unknown} content A value, a block or a list of blocks.
   * @param {object} [options] `success: false` for a failure that the model should see as one,
   *   `metadata` for the embedding program, `filesModified`, `commandExecuted`.
   */
  constructor(content, { success = true, metadata = {}, filesModified = [], commandExecuted = null } = {}) {
    this.content = blocks(content);
    this.success = success;
    this.metadata = metadata;
    this.filesModified = [...filesModified];
    this.commandExecuted = commandExecuted;
  }

  /** The text blocks, joined with newlines. */
  get text() {
    return this.content.filter((block) => block.tag === 'text').map((block) => block.val).join('\n');
  }

  /** The value of the first JSON block. */
  get json() {
    const block = this.content.find(({ tag }) => tag === 'json');
    return block === undefined ? undefined : JSON.parse(block.val);
  }
}

/** Converts what a tool returned. With an output schema it is one JSON block. */
export function toOutput(value, { isJson }) {
  if (value instanceof Output) return value;
  if (typeof value?.then === 'function') {
    throw new TypeError('a tool returns its value, not a promise: there is no event loop in the sandbox');
  }
  return new Output(isJson ? json(value) : value);
}

/** Writes JSON. Throws where a value has no JSON form. */
export function stringify(value) {
  const text = JSON.stringify(value, (key, member) => {
    if (typeof member === 'number' && !Number.isFinite(member)) throw new TypeError(`${member} has no JSON form`);
    if (member instanceof Map) return Object.fromEntries(member);
    if (member instanceof Set) return [...member];
    return member;
  });
  if (text === undefined) throw new TypeError(`a value of type ${typeof value} has no JSON form`);
  return text;
}

function blocks(value) {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.some((element) => element instanceof Block)) return value.map(block);
  return [block(value)];
}

function block(value) {
  if (value instanceof Block) return value;
  if (typeof value === 'string') return text(value);
  if (!(value instanceof Uint8Array)) return json(value);
  const mime = mediaType(value);
  if (mime === undefined) return resource('tool:output', value, 'application/octet-stream');
  return mime.startsWith('image/') ? image(value, mime) : audio(value, mime);
}

function mediaType(data) {
  const ascii = (from, to) => String.fromCharCode(...data.subarray(from, to));
  if (ascii(0, 4) === 'RIFF') return RIFF[ascii(8, 12)];
  return MAGIC.find(([magic]) => magic.every((byte, at) => data[at] === byte))?.[1];
}

function known(data, kind) {
  const mime = mediaType(data);
  if (mime?.startsWith(kind)) return mime;
  throw new TypeError(`the media type of this ${kind} is not known: pass it as the second argument`);
}
