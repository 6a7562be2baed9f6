/** The errors of a tool, and the conversion from other exceptions. */

/** The tool failed. The model reads the message, and nothing else. */
export class ToolError extends Error {
  kind = 'failed';

  get name() {
    return this.constructor.name;
  }
}

/** The input conforms to the schema and still cannot be used. */
export class InvalidInput extends ToolError {
  kind = 'invalid-input';

  /**
   * @param {string} field The argument's name, or a JSON pointer to the value.
   * @param {string} reason The fault of the value, and the accepted values.
   */
  constructor(field, reason) {
    super(field ? `${field}: ${reason}` : reason);
    this.field = field;
    this.reason = reason;
  }
}

/** Something that the input names does not exist. */
export class NotFound extends ToolError {
  kind = 'not-found';
}

/** Something that the tool needs is not permitted. */
export class PermissionDenied extends ToolError {
  kind = 'permission-denied';
}

/** The tool stopped because the caller cancelled the call. */
export class Cancelled extends ToolError {
  kind = 'cancelled';

  constructor(message = 'the call was cancelled') {
    super(message);
  }
}

/** A tool that the host would refuse. Thrown when the module is loaded, never in a call. */
export class DefinitionError extends Error {}

/** Throws a {@link DefinitionError} unless something holds. */
export function require(holds, message) {
  if (!holds) throw new DefinitionError(message);
}

/** Converts anything thrown to an error that the model can read: one line, no stack. */
export function fromThrown(thrown) {
  if (thrown instanceof ToolError) return thrown;
  if (thrown instanceof Error) {
    const { name, message } = thrown;
    return new ToolError(name === 'Error' && message ? message : message ? `${name}: ${message}` : name);
  }
  return new ToolError(typeof thrown === 'string' ? thrown : `the tool threw ${show(thrown)}`);
}

function show(value) {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
