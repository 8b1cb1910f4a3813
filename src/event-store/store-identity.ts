import type { Clock } from '../base/clock.ts';
import { FuelError } from '../base/errors.ts';
import { world } from '../base/world.ts';
import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { decodeStrict } from './codec.ts';
import type { EventStore } from './event-store.ts';
import { newEvent } from './new-event.ts';
import type { Position } from './recorded-event.ts';

const AUTHOR = { actor: 'system', command: 'store open' };

/**
 * The id of the event store, from the first event of its stream `operations`. Checkpoints carry it, so that they are
 * never used with another store. A store without an id gets one; where several processes try, all return the id of
 * the one that wins. Rejects with `STORE_MISMATCH` when that first event is another one.
 */
export async function storeIdentity(store: EventStore, clock: Clock): Promise<string> {
  const known = await readIdentity(store);
  if (known !== undefined) return known;
  const named = newEvent({ type: 'StoreNamed', data: { store_id: world.randomUUID() } }, AUTHOR, clock.now());
  await store.append([{ stream: OPERATIONS_STREAM, expected: 'none', events: [named] }]);
  const recorded = await readIdentity(store); // ours, or that of the process that was faster
  if (recorded !== undefined) return recorded;
  throw new FuelError(
    'STORE_MISMATCH',
    `the stream ${OPERATIONS_STREAM} does not accept the event that names the store`,
  );
}

/** As `storeIdentity`, and `undefined` for a store without a name. */
async function readIdentity(store: EventStore): Promise<string | undefined> {
  const [first] = await store.readStream(OPERATIONS_STREAM);
  if (first === undefined) return undefined;
  const decoded = decodeStrict(first);
  if (decoded.ok && decoded.type === 'StoreNamed') return (decoded.data as { store_id: string }).store_id;
  const problem = decoded.ok ? `it is ${decoded.type}` : decoded.reason;
  throw new FuelError(
    'STORE_MISMATCH',
    `the first event of the stream ${OPERATIONS_STREAM} must be StoreNamed: ${problem}`,
  );
}

/** As `assertCheckpoint`, for a view that may have no checkpoint. Gives a store without an id none. */
export async function assertViewFits(
  checkpoint: { readonly storeId: string; readonly position: Position } | undefined,
  store: EventStore,
  projection: string,
): Promise<void> {
  if (checkpoint === undefined) return;
  const storeId = await readIdentity(store);
  if (storeId !== undefined) await assertCheckpoint(checkpoint, { store, storeId }, projection);
}

/**
 * Rejects with `STORE_MISMATCH`, and says what to do, when a projection's checkpoint belongs to another event store or
 * lies ahead of its end, as after an older backup was restored: to continue would skip events. `projection` is its
 * name in `fuel projection rebuild`.
 */
export async function assertCheckpoint(
  checkpoint: { readonly storeId: string; readonly position: Position },
  { store, storeId }: { readonly store: EventStore; readonly storeId: string },
  projection: string,
): Promise<void> {
  const rebuild = `run "fuel projection rebuild ${projection}"`;
  if (checkpoint.storeId !== storeId) {
    throw new FuelError(
      'STORE_MISMATCH',
      `${projection} was made from event store ${checkpoint.storeId} and this one is ${storeId}: ` +
        `connect the event store it was made from, or ${rebuild}`,
    );
  }
  if (!(await store.hasReached(checkpoint.position))) {
    throw new FuelError(
      'STORE_MISMATCH',
      `${projection} stands at position ${checkpoint.position} and the event store ends at ${await store.head()}: ` +
        `restore the backup of the event store that belongs to it, or ${rebuild}`,
    );
  }
}
