import type { Content, Context, Given, Output, SideEffects, Tool } from './index.js';

export interface Result {
  output: Output;
  content: Content[];
  text: string;
  json: any;
  success: boolean;
  /** The files of the workspace after the call, by their relative paths. */
  files: Record<string, Buffer>;
  logs: [level: string, message: string][];
  progress: [done: number, total: number | null, message: string | null][];
  emitted: string[];
}

export interface CallOptions {
  /** The files of the workspace before the call, by their relative paths. */
  files?: Record<string, string | Uint8Array>;
  /** The workspace, in place of a temporary directory. */
  workspace?: string;
  /** The call appears cancelled after this number of polls. */
  cancelAfter?: number;
  callId?: string;
  sessionId?: string | null;
  turnId?: string | null;
  remainingMs?: number;
  /** JSON that the caller passes along. */
  context?: string;
  metadata?: string;
}

/** Calls a tool as the host does, in a workspace of its own. Throws a `ToolError` if it failed. */
export function call<I>(tool: Tool<I>, input?: Given<I> | string, options?: CallOptions): Result;

/** Stands for the host, and records what a tool sends to it. */
export class Recorder {
  constructor(cancelAfter?: number);
  logs: [string, string][];
  emitted: string[];
}

export function testContext(record?: Recorder, properties?: CallOptions): Context;

/** Returns what the host reads when it loads the plugin, with parsed schemas. */
export function definition(tool: Tool<any>): {
  name: string;
  description: string;
  sideEffects: SideEffects;
  inputSchema: any;
  outputSchema: any;
  metadata: any;
};
