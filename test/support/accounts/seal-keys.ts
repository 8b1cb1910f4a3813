import type { SealKeys } from '../../../src/accounts/directory/rows/stored-directory.ts';

/** The keys of a deployment with these master keys, named by a number: the first seals. */
export function sealKeys(...names: readonly number[]): SealKeys {
  const keys = names.map((name) => Buffer.alloc(32, name));
  return { known: () => keys, current: () => keys[0] ?? Buffer.alloc(32) };
}
