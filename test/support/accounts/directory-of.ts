import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';

/** A directory of account 7 after these events. */
export function directoryOf(...events: readonly AccountEvent[]): Directory {
  const directory = new Directory();
  for (const [revision, event] of events.entries()) {
    const decoded = { ok: true, event, atMs: 1_000 } as const;
    directory.apply({ position: revision + 1, stream: 'account-7', revision, decoded });
  }
  return directory;
}
