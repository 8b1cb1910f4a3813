import { applyToDirectory, restoreDirectory } from '../../accounts/directory/apply-to-directory.ts';
import { Directory } from '../../accounts/directory/fold/directory.ts';
import type { AccountState } from '../../accounts/directory/fold/directory-entry.ts';
import { DIRECTORY_VERSION } from '../../accounts/directory/rows/packed-row.ts';
import type { StoredDirectory } from '../../accounts/directory/rows/stored-directory.ts';
import type { Clock } from '../../base/clock.ts';
import { ACCOUNT_STREAMS } from '../../domain/account-events.ts';
import { sameJson } from '../../domain/values/same-json.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readToEnd } from '../../event-store/reads.ts';
import { readSkipped } from '../../event-store/skipped-events.ts';

export interface DirectoryAgreement {
  /** The number of accounts. */
  readonly checked: number;
  /** One line for each difference. */
  readonly differences: readonly string[];
}

/**
 * Compares the directory that a process starts with (the stored one and the later events) with what the account streams
 * alone say. A stored directory that was changed is a difference, although a start would replace it. Changes nothing.
 */
export async function verifyDirectory(
  { store, stored, clock }: { store: EventStore; stored: StoredDirectory; clock: Clock },
  accountId?: number,
): Promise<DirectoryAgreement> {
  const [started, streams] = [new Directory(), new Directory()];
  const skipped = await readSkipped(store);
  const loading = await stored.load(store, clock);
  if (loading.kind === 'loaded') await restoreDirectory(started, loading.loaded, { store, skipped });
  const restoredTo = started.position;
  for await (const { events } of readToEnd(store, { prefixes: [ACCOUNT_STREAMS], after: 0 })) {
    for (const event of events) {
      applyToDirectory(streams, event, skipped);
      if (event.position > restoredTo) applyToDirectory(started, event, skipped);
    }
  }
  const differences =
    loading.kind === 'unusable' && loading.checkpoint.version === DIRECTORY_VERSION
      ? [`the stored directory cannot be used: ${loading.reason}`]
      : [];
  const isAskedFor = ({ id }: AccountState): boolean => accountId === undefined || id === accountId;
  const restored = new Map(
    Iterator.from(started.states())
      .filter(isAskedFor)
      .map((state) => [state.id, state]),
  );
  let checked = 0;
  for (const state of Iterator.from(streams.states()).filter(isAskedFor)) {
    checked++;
    if (!isSame(state, restored.get(state.id)))
      differences.push(`account ${state.id} differs from its stream`);
    restored.delete(state.id);
  }
  for (const id of restored.keys()) differences.push(`account ${id} has no stream`);
  return { checked, differences };
}

function isSame(state: AccountState, other: AccountState | undefined): boolean {
  return other !== undefined && sameJson(plain(state), plain(other));
}

function plain({ revision, unreadable, packed, lastKeys }: AccountState): unknown {
  const text = packed && Buffer.from(packed.bytes.subarray(packed.from, packed.to)).toString();
  return {
    revision,
    unreadable,
    account: text === undefined ? null : JSON.parse(text),
    prefixes: packed?.prefixes ?? [],
    lastKeys: [...(lastKeys ?? [])],
  };
}
