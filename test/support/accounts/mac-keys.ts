import type { MacKeys } from '../../../src/accounts/directory/rows/stored-directory.ts';

/** The keys of a deployment with these master keys, named by a number. The first one is current. */
export function macKeys(...names: readonly number[]): MacKeys {
  const keys = names.map((name) => Buffer.alloc(32, name));
  return { known: () => keys, current: () => keys[0] ?? Buffer.alloc(32) };
}
