import { trimmed } from './trimmed.ts';

/** One environment variable: its default as text, how it is read, what it is for, and whether it is a secret. */
export interface Setting<T> {
  readonly fallback: string | undefined;
  /** Throws an `Error` whose message says what the text must be. */
  readonly read: (text: string) => T;
  /** The text for the table in docs/operations/running.md, in Markdown: its purpose and its permitted values. */
  readonly about: string;
  readonly secret?: true;
}

/** Settings by name. */
export type SettingTable = Readonly<Record<string, Setting<unknown>>>;

/** Every setting's value by its name; `undefined` if it is not set and has no default. */
export type ValuesOf<S extends SettingTable> = {
  readonly [N in keyof S]: ReturnType<S[N]['read']> | (S[N]['fallback'] extends string ? never : undefined);
};

export type Env = Readonly<Record<string, string | undefined>>;

export const setting = <T>(
  fallback: string,
  read: (text: string) => T,
  about: string,
): Setting<T> & { readonly fallback: string } => ({ fallback, read, about });

export const optional = <T>(read: (text: string) => T, about: string) => ({
  fallback: undefined,
  read,
  about,
});

export const secret = <S extends Setting<unknown>>(plain: S): S & { readonly secret: true } => ({
  ...plain,
  secret: true,
});

/**
 * Reads the settings: values of those that are valid or have a default, and the fault of each other one. Never throws.
 */
export function readSettings<S extends SettingTable>(
  table: S,
  env: Env,
): { readonly values: Partial<ValuesOf<S>>; readonly faults: ReadonlyMap<string, string> } {
  const values: Record<string, unknown> = {};
  const faults = new Map<string, string>();
  for (const [name, { fallback, read }] of Object.entries(table)) {
    const text = textOf(env, name) ?? fallback;
    if (text === undefined) continue;
    try {
      values[name] = read(text);
    } catch (error) {
      faults.set(name, `${name}: ${(error as Error).message}`);
    }
  }
  return { values: values as Partial<ValuesOf<S>>, faults };
}

/**
 * Returns the value without surrounding white space, since secrets and files made with `echo` end with a line feed. An
 * empty variable counts as not set: templates of shells and containers often leave variables empty.
 */
export function textOf(env: Env, name: string): string | undefined {
  return trimmed(env[name] ?? '') || undefined;
}
