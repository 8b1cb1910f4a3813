import { accountStream } from '../../domain/account-events.ts';
import { occurredAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { readSkipped, type SkippedEvents } from '../../event-store/skipped-events.ts';
import { foldAccount } from './fold-account.ts';
import type { StoredAccount } from './stored-account.ts';

/**
 * Loads one account as of now, or as of a given time, from its stream alone; `undefined` if it had not been opened.
 * Rejects with the store's errors.
 */
export async function loadAccount(
  store: Pick<EventStore, 'readStream'>,
  accountId: number,
  { untilMs = Infinity }: { readonly untilMs?: number | undefined } = {},
): Promise<StoredAccount | undefined> {
  const skipped = await readSkipped(store);
  const events = await store.readStream(accountStream(accountId));
  const later = events.findIndex((event) => occurredAtMs(event) > untilMs);
  return accountBy(later < 0 ? events : events.slice(0, later), accountId, skipped);
}

function accountBy(
  events: readonly RecordedEvent[],
  id: number,
  skipped: SkippedEvents,
): StoredAccount | undefined {
  const last = events.at(-1);
  if (last === undefined) return undefined;
  const { account, keys, unreadable = null } = foldAccount(id, events, { skipped, ownerOf: () => undefined });
  return {
    id,
    revision: last.revision,
    position: last.position,
    unreadable,
    account: unreadable === null ? account : undefined,
    keys: new Map([...keys].map(([prefix, { key }]) => [prefix, key])),
  };
}
