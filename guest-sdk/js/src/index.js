/** Write a Palisade plugin in JavaScript: tools for agents, each call in its own sandbox. */

export { Context } from './context.js';
export { Cancelled, DefinitionError, InvalidInput, NotFound, PermissionDenied, ToolError } from './errors.js';
export { files } from './files.js';
export { Output, audio, image, json, link, resource, text } from './output.js';
export { t } from './schema.js';
export { tool } from './tool.js';
