/** The types of the contract `palisade:tool@0.1.0` (`wit/`), as JavaScript has them. */

export type SideEffects = 'none' | 'read' | 'write' | 'execute' | 'network';

export interface Definition {
  name: string;
  title: string | null;
  description: string;
  inputSchema: string;
  outputSchema: string | null;
  sideEffects: SideEffects;
  idempotent: boolean;
  timeoutMs: number | null;
  metadata: string;
}

export interface Call {
  callId: string;
  sessionId: string | null;
  turnId: string | null;
  tool: string;
  input: string;
  remainingMs: number;
  context: string;
  metadata: string;
}

export interface Media {
  mime: string;
  data: Uint8Array;
}

export type ResourceBody = { tag: 'text'; val: string } | { tag: 'bytes'; val: Uint8Array };

export interface EmbeddedResource {
  uri: string;
  mime: string | null;
  body: ResourceBody;
}

export interface ResourceLink {
  uri: string;
  name: string;
  mime: string | null;
}

export type Content =
  | { tag: 'text'; val: string }
  | { tag: 'json'; val: string }
  | { tag: 'image'; val: Media }
  | { tag: 'audio'; val: Media }
  | { tag: 'resource'; val: EmbeddedResource }
  | { tag: 'link'; val: ResourceLink };

export interface Output {
  content: Content[];
  success: boolean;
  metadata: string;
  filesModified: string[];
  commandExecuted: string | null;
}

export interface InvalidInput {
  field: string;
  reason: string;
}

export type ToolError =
  | { tag: 'invalid-input'; val: InvalidInput }
  | { tag: 'not-found'; val: string }
  | { tag: 'permission-denied'; val: string }
  | { tag: 'failed'; val: string }
  | { tag: 'cancelled' };

export type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error';
