import { unreadableAccounts } from '../../accounts/rows/stored-account.ts';
import { ACCOUNTS } from '../../accounts/rows/tables.ts';
import type { Clock } from '../../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { transactionIdOf } from '../../domain/transaction-events.ts';
import type { EventStore, PersistentSubscriptions } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { recordOperations } from '../../event-store/operations.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { notSkipped } from '../../event-store/skipped-events.ts';
import { VIEW_NAME } from '../../pull/view/projector.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import { DELIVERIES_GROUP } from '../../push/fan-out/run-fan-out.ts';
import { ACCOUNTS_NAME } from '../../service/ops/followers.ts';
import type { Tables } from '../../tables/tables.ts';
import { refoldAccounts } from '../accounts/verify-accounts.ts';
import { repairRow } from '../verify/repair-view.ts';

/**
 * Renders the rows of the transactions that have parked events again: of all that were not skipped, or of the one at position
 * `only`. What still can't be applied stays parked. Records `ParkedRetried` for each page of events.
 */
export async function retryParked(
  store: EventStore,
  view: TransactionsView,
  options: { readonly only: number | undefined; readonly author: Author; readonly clock: Clock },
): Promise<{ readonly retried: number; readonly still_parked: number }> {
  const { only } = options;
  const counts = { retried: 0, still_parked: 0 };
  let after = only === undefined ? 0 : only - 1;
  for (;;) {
    const page = await view.parked({ after, ...(only !== undefined && { limit: 1 }) });
    const last = page.at(-1)?.position;
    if (last === undefined || (only !== undefined && last !== only)) return counts;
    const positions: Position[] = [];
    for (const { stream, position } of await notSkipped(store, page)) {
      if ((await store.readStream(stream)).length === 0) continue; // it was erased, so there is nothing to apply
      const id = transactionIdOf(stream);
      if (id !== undefined) await repairRow(id, { store, view });
      positions.push(position);
    }
    if (positions.length > 0) {
      const data = { projection: VIEW_NAME, positions };
      await recordOperations(store, [{ type: 'ParkedRetried', data }], options);
    }
    const remaining = new Set((await view.parked({ after })).map(({ position }) => position));
    counts.retried += positions.length;
    counts.still_parked += positions.filter((position) => remaining.has(position)).length;
    if (only !== undefined) return counts;
    after = last;
  }
}

/**
 * Folds again the accounts that can't be read: all, or the one with the event at position `only`. What still can't be applied
 * leaves its account unreadable. Records `ParkedRetried`.
 */
export async function retryAccounts(
  store: EventStore,
  tables: Tables,
  options: { readonly only: number | undefined; readonly author: Author; readonly clock: Clock },
): Promise<{ readonly retried: number; readonly still_parked: number }> {
  const { only } = options;
  const rows = (await Array.fromAsync(unreadableAccounts(tables))).filter(
    ({ unreadable_at: position }) => only === undefined || position === only,
  );
  const ids = rows.map(({ id }) => id);
  await refoldAccounts(ids, { store, tables });
  const positions = rows.flatMap(({ unreadable_at: position }) => position ?? []);
  if (positions.length > 0) {
    const data = { projection: ACCOUNTS_NAME, positions };
    await recordOperations(store, [{ type: 'ParkedRetried', data }], options);
  }
  const after = await tables.get(ACCOUNTS, ids, ['unreadable']);
  return { retried: rows.length, still_parked: after.filter(({ unreadable }) => unreadable !== null).length };
}

/**
 * Hands the parked events to the consumers of the deliveries again, which handle them in their own time. Records `ParkedRetried`
 * with the oldest positions first.
 */
export async function replayParked(
  store: EventStore,
  subscriptions: Pick<PersistentSubscriptions, 'parked' | 'replayParked'>,
  options: { readonly author: Author; readonly clock: Clock },
): Promise<{ readonly retried: number; readonly still_parked: null }> {
  const positions = (await subscriptions.parked(DELIVERIES_GROUP)).map(({ event }) => event.position);
  if (positions.length > 0) {
    const data = { projection: DELIVERIES_GROUP, positions };
    await recordOperations(store, [{ type: 'ParkedRetried', data }], options);
  }
  return { retried: await subscriptions.replayParked(DELIVERIES_GROUP), still_parked: null };
}

/**
 * Has the consumers of the deliveries handle the parked events again, so that nothing stays parked that has been dealt with. If
 * there are no consumers they do so when they start, since EventStoreDB loses what is replayed to nobody when it restarts.
 */
export async function replayIfConsumed(
  coordination: Pick<Coordination, 'live'>,
  subscriptions: Pick<PersistentSubscriptions, 'status' | 'replayParked'>,
): Promise<void> {
  const live = await coordination.live(PROCESS_MAX_AGE_MS);
  if (!live.some(({ roles }) => roles.includes('webhooks'))) return;
  if ((await subscriptions.status(DELIVERIES_GROUP)) !== undefined)
    await subscriptions.replayParked(DELIVERIES_GROUP);
}
