import type { Directory } from '../../../src/accounts/directory/fold/directory.ts';

/** Copies what a directory knows of each account, so that it does not change with the directory. */
export function contentOf(directory: Directory) {
  return [...directory.accounts()].map(({ id, account, keys, masterKeys, position, revision, unreadable }) =>
    structuredClone({ id, account, keys, masterKeys, position, revision, unreadable }),
  );
}
