import type { Content, Definition, Level, SideEffects } from './contract.js';

export type { Content, Level, SideEffects } from './contract.js';

/** Whether a value may be left out: true if it is then undefined. */
export type Optional = boolean | 'default';

/** A type of a value. Every method returns a changed copy. */
export class Type<T, O extends Optional = false> {
  private readonly _: [T, O];
  describe(description: string): Type<T, O>;
  /** The value may be left out; it is then undefined. */
  optional(): Type<T | undefined, true>;
  /** The value may be left out; it is then this one. */
  default(value: T): Type<T, 'default'>;
  /** The least number, length or count. */
  min(least: number): Type<T, O>;
  /** The greatest number, length or count. */
  max(most: number): Type<T, O>;
  /** A regular expression that the host checks, in the common subset of dialects. */
  pattern(pattern: string | RegExp): Type<T, O>;
  readonly schema: Record<string, unknown>;
  readonly isOptional: boolean;
  read(value: unknown, at?: string): T;
}

export type Members = { [name: string]: Type<any, Optional> };

/** The value that a type reads. */
export type Infer<T> = T extends Type<infer Value, Optional>
  ? Value
  : T extends Members
    ? { [K in keyof T as T[K] extends Type<any, true> ? never : K]: Infer<T[K]> } & {
        [K in keyof T as T[K] extends Type<any, true> ? K : never]?: Infer<T[K]>;
      }
    : Record<string, any>;

/** The value that a caller gives: members with a default may be left out as well. */
export type Given<T> = T extends Type<infer Value, Optional>
  ? Value
  : T extends Members
    ? { [K in keyof T as T[K] extends Type<any, false> ? K : never]: Infer<T[K]> } & {
        [K in keyof T as T[K] extends Type<any, true | 'default'> ? K : never]?: Infer<T[K]>;
      }
    : Record<string, any>;

/** The types. The last argument of each is the description for the model. */
export const t: {
  string(description?: string): Type<string>;
  number(description?: string): Type<number>;
  integer(description?: string): Type<number>;
  boolean(description?: string): Type<boolean>;
  any(description?: string): Type<any>;
  enum<const V extends string>(values: readonly V[], description?: string): Type<V>;
  array<V>(item: Type<V, Optional>, description?: string): Type<V[]>;
  object<M extends Members>(members: M, description?: string): Type<Infer<M>>;
  record<V>(value: Type<V, Optional>, description?: string): Type<Record<string, V>>;
  union<U extends Type<any, Optional>[]>(types: [...U], description?: string): Type<Infer<U[number]>>;
  /** A path of the workspace that the host has checked, relative to it. */
  path(description?: string): Type<string>;
  /** A path that the tool only reads. */
  readPath(description?: string): Type<string>;
  /** A path that the tool may change. */
  writePath(description?: string): Type<string>;
};

/** The context that a tool's function gets beside its input. */
export class Context {
  private constructor();
  log(level: Level, message: unknown): void;
  debug(message: unknown): void;
  info(message: unknown): void;
  warn(message: unknown): void;
  error(message: unknown): void;
  /** Reports progress: `done` of `total`, in any unit. */
  progress(done: number, total?: number | null, message?: string | null): void;
  /** Shows a part of the output before the call has ended. The model reads only the result. */
  emit(chunk: string): void;
  readonly cancelled: boolean;
  /** Stops a loop of a cancelled call, by throwing `Cancelled`. */
  checkpoint(): void;
  /** Records a file that the tool changed, relative to the workspace. */
  modified(path: string): void;
  readonly callId: string;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly remainingMs: number;
  readonly caller: any;
  readonly metadata: Record<string, any>;
  readonly filesModified: string[];
}

/** The results that an output accepts. They are only read, so that lists may be constant. */
export type Returned<O> = O extends Members | Type<any, Optional>
  ? Constant<Infer<O>> | Output
  : unknown;

type Constant<T> = T extends readonly (infer V)[]
  ? readonly Constant<V>[]
  : T extends object
    ? { readonly [K in keyof T]: Constant<T[K]> }
    : T;

export interface ToolOptions<
  I extends Members | Type<any, Optional> | object,
  O,
  R extends Returned<O> = Returned<O>,
> {
  /** `^[a-z][a-z0-9_]{0,63}$` */
  name: string;
  /** The purpose of the tool and when to use it, for the model that decides. */
  description: string;
  /** The most that the tool can do, which the host enforces. */
  sideEffects: SideEffects;
  /** Members, a type, or a JSON Schema of an object. */
  input?: I;
  /** The result: members, a type, or a JSON Schema. The output is then one JSON value. */
  output?: O;
  title?: string;
  idempotent?: boolean;
  timeoutMs?: number;
  metadata?: Record<string, unknown>;
  run(input: Infer<I>, context: Context): R;
}

/** A tool: callable as its function, with its definition. */
export interface Tool<I> {
  (input: Infer<I>, context?: Context): unknown;
  readonly toolName: string;
  readonly definition: Definition;
}

// The type of the result is a parameter of its own, since the compiler widens the returned strings
// before it knows the output. As a constant type they keep their values.
export function tool<
  I extends Members | Type<any, Optional> | object = {},
  O = undefined,
  const R extends Returned<O> = Returned<O>,
>(options: ToolOptions<I, O, R>): Tool<I>;

/** Files of the workspace. Paths are relative to it. */
export const files: {
  readText(path: string): string;
  readBytes(path: string): Uint8Array;
  writeText(path: string, text: string): void;
  writeBytes(path: string, data: Uint8Array): void;
  list(path?: string): { name: string; type: FileType }[];
  stat(path: string): { type: FileType; size: number; modified: Date | null };
  exists(path: string): boolean;
  createDirectory(path: string, options?: { recursive?: boolean }): void;
  remove(path: string): void;
  rename(from: string, to: string): void;
  /**
   * Returns the files below a directory, by their paths, at any depth. Links, directories that the
   * tool may not read, and what has a name of `skip` are left out.
   */
  walk(path?: string, options?: { skip?: string[] }): string[];
};

export type FileType = 'file' | 'directory' | 'other';

export class Output {
  constructor(
    content: unknown,
    options?: {
      success?: boolean;
      metadata?: Record<string, unknown>;
      filesModified?: string[];
      commandExecuted?: string | null;
    },
  );
  readonly content: Content[];
  readonly success: boolean;
  readonly text: string;
  readonly json: any;
  readonly filesModified: string[];
}

export function text(value: string): Content;
export function json(value: unknown): Content;
export function image(data: Uint8Array, mime?: string): Content;
export function audio(data: Uint8Array, mime?: string): Content;
export function resource(uri: string, body: string | Uint8Array, mime?: string | null): Content;
export function link(uri: string, name: string, mime?: string | null): Content;

/** The tool failed. The model reads the message, and nothing else. */
export class ToolError extends Error {
  kind: 'failed' | 'invalid-input' | 'not-found' | 'permission-denied' | 'cancelled';
}
export class InvalidInput extends ToolError {
  constructor(field: string, reason: string);
  readonly field: string;
  readonly reason: string;
}
export class NotFound extends ToolError {}
export class PermissionDenied extends ToolError {}
export class Cancelled extends ToolError {
  constructor(message?: string);
}
export class DefinitionError extends Error {}
