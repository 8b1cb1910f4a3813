import { ACCOUNTS } from '../../accounts/rows/tables.ts';
import type { Clock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import { accountStream } from '../../domain/account-events.ts';
import { RESTORE_EVENTS } from '../../event-store/damage.ts';
import type { EventStore, PersistentSubscriptions } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { operationsOf, recordOperations } from '../../event-store/operations.ts';
import { type EventRef, isDamaged } from '../../event-store/recorded-event.ts';
import { isSkipped, readSkipped } from '../../event-store/skipped-events.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { DELIVERIES_GROUP } from '../../push/fan-out/run-fan-out.ts';
import type { Tables } from '../../tables/tables.ts';

/**
 * Skips the event at this position for good: an event that made its account unreadable, which is then served without it, or an
 * event of a transaction, which is then no longer listed: `parked` is what `parkedAt` found. Returns false if it was skipped before. Rejects with `REFUSED` if there
 * is no such event, or if its bytes are damaged.
 */
export async function skipEvent(
  store: EventStore,
  position: number,
  {
    author,
    reason,
    clock,
    parked,
  }: {
    readonly author: Author;
    readonly reason: string;
    readonly clock: Clock;
    readonly parked?: EventRef | undefined;
  },
): Promise<boolean> {
  const wasSkipped =
    parked === undefined ? await isOfSkipped(store, position) : isSkipped(await readSkipped(store), parked);
  if (wasSkipped) return false;
  if (parked === undefined) {
    throw new FuelError(
      'REFUSED',
      `the event at position ${position} makes no account unreadable, and no event of a transaction is parked there. See ` +
        '`fuel projection parked` and `fuel account show` for the positions',
    );
  }
  const { stream, revision } = parked;
  const [event] = await store.readStream(stream, { fromRevision: revision });
  if (event !== undefined && isDamaged(event)) {
    throw new FuelError(
      'REFUSED',
      `the bytes of the event are damaged, and it may have switched something off. To restore it, ${RESTORE_EVENTS}`,
    );
  }
  const data = { position, stream, revision, reason };
  await recordOperations(store, [{ type: 'ParkedSkipped', data }], { author, clock });
  return true;
}

/**
 * Returns the event that is parked at this position: one of a transaction, even if it was skipped already, or one that makes its
 * account unreadable.
 */
export async function parkedAt(
  position: number,
  {
    store,
    view,
    subscriptions,
    accounts,
  }: {
    readonly store: Pick<EventStore, 'readStream'>;
    readonly view: Pick<TransactionsView, 'parked'>;
    readonly subscriptions: Pick<PersistentSubscriptions, 'parked'>;
    readonly accounts: Pick<Tables, 'find'>;
  },
): Promise<EventRef | undefined> {
  const [byView] = await view.parked({ after: position - 1, limit: 1 });
  if (byView?.position === position) return byView;
  const parked = await subscriptions.parked(DELIVERIES_GROUP);
  return (
    parked.find(({ event }) => event.position === position)?.event ?? closingEvent(position, store, accounts)
  );
}

async function closingEvent(
  position: number,
  store: Pick<EventStore, 'readStream'>,
  accounts: Pick<Tables, 'find'>,
): Promise<EventRef | undefined> {
  const equals = { unreadable_at: position };
  const [account] = await accounts.find(ACCOUNTS, { index: 'by_unreadable', equals, limit: 1 });
  const events = account === undefined ? [] : await store.readStream(accountStream(account.id));
  return events.find((event) => event.position === position);
}

/** True if the event was skipped before, even if it does not make its account unreadable any longer. */
async function isOfSkipped(store: EventStore, position: number): Promise<boolean> {
  return (await operationsOf(store)).skippedPositions.has(position);
}
