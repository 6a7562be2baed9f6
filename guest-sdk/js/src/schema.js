/** Describes the input of a tool: each type gives a JSON Schema and reads a value. */

import { InvalidInput, require } from './errors.js';

/** A type of a value. Every method returns a changed copy. */
export class Type {
  #schema;
  #read;
  #isOptional = false;
  #default;

  constructor(schema, read) {
    this.#schema = schema;
    this.#read = read;
  }

  /** Adds keywords of JSON Schema, and a check of values. */
  with(keywords, holds, message) {
    const read = this.#read;
    const checked = (value, at) => {
      const converted = read(value, at);
      if (holds && !holds(converted)) throw new InvalidInput(at, message);
      return converted;
    };
    const copy = new Type({ ...this.#schema, ...keywords }, holds ? checked : read);
    copy.#isOptional = this.#isOptional;
    copy.#default = this.#default;
    return copy.#sound();
  }

  /** The meaning of the value, for the model. */
  describe(description) {
    return this.with({ description });
  }

  /** The value may be left out; it is then undefined. */
  optional() {
    const copy = this.with({});
    copy.#isOptional = true;
    return copy;
  }

  /** The value may be left out; it is then this one. */
  default(value) {
    const copy = this.with({ default: value });
    copy.#isOptional = true;
    copy.#default = value;
    return copy.#sound();
  }

  /** The least number, length or count. */
  min(least) {
    const [keyword, measure, what] = this.#measured();
    return this.with({ [`min${keyword}`]: least }, (v) => measure(v) >= least, `must be at least ${least}${what}`);
  }

  /** The greatest number, length or count. */
  max(most) {
    const [keyword, measure, what] = this.#measured();
    return this.with({ [`max${keyword}`]: most }, (v) => measure(v) <= most, `must be at most ${most}${what}`);
  }

  /** A regular expression that the host checks, in the common subset of dialects. */
  pattern(pattern) {
    const { source, flags } = pattern instanceof RegExp ? pattern : { source: pattern, flags: '' };
    require(/^u?$/.test(flags), `the pattern /${source}/${flags}: a schema has no flags; write both cases, such as [Aa]`);
    const expression = expressionOf(source);
    return this.with({ pattern: source }, (v) => expression.test(v), `must match ${source}`);
  }

  /** The JSON Schema. */
  get schema() {
    return this.#schema;
  }

  /** True if the value may be left out. */
  get isOptional() {
    return this.#isOptional;
  }

  /** Reads a value of JSON. Throws an `InvalidInput` with the JSON pointer of a wrong one. */
  read(value, at = '') {
    if (value === undefined) {
      if (this.#isOptional) return structuredCopy(this.#default);
      throw new InvalidInput(at, 'is required');
    }
    return this.#read(value, at);
  }

  /** Checks that the default is a value of the type. */
  #sound() {
    if (this.#default === undefined) return this;
    try {
      this.#read(this.#default, '');
    } catch (error) {
      require(!(error instanceof InvalidInput), `the default ${JSON.stringify(this.#default)}: ${error.reason}`);
      throw error;
    }
    return this;
  }

  #measured() {
    const kinds = {
      string: ['Length', (v) => [...v].length, ' characters'],
      array: ['Items', (v) => v.length, ' items'],
      object: ['Properties', (v) => Object.keys(v).length, ' members'],
    };
    return kinds[this.#schema.type] ?? ['imum', (v) => v, ''];
  }
}

/** The types. The first argument of most is the description for the model. */
export const t = {
  string: (description) => simple('string', 'a string', (v) => typeof v === 'string', description),
  number: (description) => simple('number', 'a number', (v) => typeof v === 'number', description),
  integer: (description) => simple('integer', 'an integer', Number.isInteger, description),
  boolean: (description) => simple('boolean', 'a boolean', (v) => typeof v === 'boolean', description),
  /** Any value. */
  any: (description) => described(new Type({}, (value) => value), description),
  /** One of these strings. */
  enum: (values, description) => {
    require(Array.isArray(values) && values.length > 0, 't.enum takes a list of strings');
    const read = (value, at) => {
      if (values.includes(value)) return value;
      throw new InvalidInput(at, `must be one of ${values.join(', ')}`);
    };
    return described(new Type({ type: 'string', enum: [...values] }, read), description);
  },
  /** A list. */
  array: (item, description) => {
    const of = typeOf(item, 't.array');
    const read = (value, at) => {
      if (!Array.isArray(value)) throw new InvalidInput(at, `expected an array, not ${kindOf(value)}`);
      return value.map((element, index) => of.read(element, `${at}/${index}`));
    };
    return described(new Type({ type: 'array', items: of.schema }, read), description);
  },
  /** An object with these members. Unknown members are ignored. */
  object: (members, description) => described(object(members), description),
  /** An object with members of any name. */
  record: (value, description) => {
    const of = typeOf(value, 't.record');
    const read = (given, at) =>
      mapped(objectOf(given, at), (member, name) => of.read(member, `${at}/${escape(name)}`));
    return described(new Type({ type: 'object', additionalProperties: of.schema }, read), description);
  },
  /** One of these types; the first that fits. */
  union: (types, description) => {
    const all = types.map((type) => typeOf(type, 't.union'));
    const read = (value, at) => {
      for (const type of all) {
        try {
          return type.read(value, at);
        } catch (error) {
          if (!(error instanceof InvalidInput)) throw error;
        }
      }
      throw new InvalidInput(at, 'matches none of the accepted types');
    };
    return described(new Type({ anyOf: all.map((type) => type.schema) }, read), description);
  },
  /** A path of the workspace that the host has checked, relative to it. */
  path: (description) => path({}, description),
  /** A path that the tool only reads. */
  readPath: (description) => path({ 'x-access': 'read' }, description),
  /** A path that the tool may change. */
  writePath: (description) => path({ 'x-access': 'write' }, description),
};

/**
 * Returns the type of a tool's input: members, a type, or a JSON Schema of an object.
 *
 * The host checks an input against the schema; a schema that is written by hand is not checked
 * again.
 */
export function inputType(input, tool) {
  if (input === undefined) return object({});
  if (input instanceof Type) {
    require(input.schema.type === 'object', `${tool}: the input is an object: use t.object`);
    return input;
  }
  const isShape = Object.values(input).every((member) => member instanceof Type);
  if (isShape) return object(input);
  require(input.type === 'object', `${tool}: \`input\` is neither members, such as { path: t.readPath() }, nor a JSON Schema of an object`);
  return new Type(input, (value, at) => objectOf(value, at));
}

/** True if a member of an object may be left out, at any depth. */
export function hasOptional(schema) {
  if (typeof schema !== 'object' || schema === null) return false;
  const names = Object.keys(schema.properties ?? {});
  const required = new Set(schema.required ?? []);
  return (
    names.some((name) => !required.has(name) || hasOptional(schema.properties[name])) ||
    hasOptional(schema.items)
  );
}

function object(members) {
  const types = Object.entries(members).map(([name, type]) => [name, typeOf(type, name)]);
  const properties = Object.fromEntries(types.map(([name, type]) => [name, type.schema]));
  const required = types.filter(([, type]) => !type.isOptional).map(([name]) => name);
  const schema = { type: 'object', properties, ...(required.length > 0 && { required }) };
  return new Type(schema, (value, at) => {
    const given = objectOf(value, at);
    const read = types.map(([name, type]) => {
      const member = Object.hasOwn(given, name) ? given[name] : undefined;
      return [name, type.read(member, `${at}/${escape(name)}`)];
    });
    return Object.fromEntries(read.filter(([, member]) => member !== undefined));
  });
}

function simple(type, name, fits, description) {
  const read = (value, at) => {
    if (fits(value)) return value;
    throw new InvalidInput(at, `expected ${name}, not ${kindOf(value)}`);
  };
  return described(new Type({ type }, read), description);
}

function path(keywords, description) {
  return t.string(description).with({ format: 'workspace-path', ...keywords });
}

/** Returns a pattern as the host reads it, which is by code points where that is possible. */
function expressionOf(source) {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(source, flags);
    } catch (error) {
      require(flags === 'u', `the pattern ${source}: ${error.message}`);
    }
  }
}

function described(type, description) {
  return description === undefined ? type : type.describe(description);
}

function typeOf(value, place) {
  require(value instanceof Type, `${place} needs a type, such as t.string()`);
  return value;
}

function objectOf(value, at) {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new InvalidInput(at, `expected an object, not ${kindOf(value)}`);
}

function kindOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return /^[aeiou]/.test(typeof value) ? `an ${typeof value}` : `a ${typeof value}`;
}

function mapped(value, convert) {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, convert(member, name)]));
}

function structuredCopy(value) {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

function escape(name) {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
