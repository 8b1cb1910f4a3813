import type { Directory } from '../../../src/accounts/directory/fold/directory.ts';

/** What a directory says of each account, as values that do not change with it. */
export function contentOf(directory: Directory) {
  return [...directory.accounts()].map(({ id, account, keys, masterKeys, position, revision, unreadable }) =>
    structuredClone({ id, account, keys, masterKeys, position, revision, unreadable }),
  );
}
