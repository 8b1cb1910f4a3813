import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { FuelError } from '../errors.ts';
import type { RecordedEvent } from '../event-store/event-store.ts';
import { type CopyMark, copyMarks } from './copy-marks.ts';
import type { CopyStoreOptions } from './copy-store.ts';

/** What there is to do. */
export interface CopyPlan {
  /** `none`: both ends use the same event store. `verify`: the events were copied before. */
  readonly events:
    | { readonly kind: 'copy' }
    | { readonly kind: 'verify'; readonly mark: CopyMark }
    | { readonly kind: 'none' };
  /**
   * `relocate`: the log stays where it is, and its deliveries get their positions in the new event store.
   * `none`: there is nothing to do, or it was copied before (`copiedBefore` says how much).
   */
  readonly deliveries: 'copy' | 'relocate' | 'none';
  readonly copiedBefore: number | null;
  /** The source's, which names it. */
  readonly first: RecordedEvent;
}

/**
 * Reads off both streams `operations` what was copied before: it is never copied again, since the service may
 * have gone on with it. Throws `REFUSED` where nothing can be copied.
 */
export async function planCopy({ source, target }: CopyStoreOptions): Promise<CopyPlan> {
  const sameStore = source.store === target.store;
  const sameLog = source.deliveries === target.deliveries;
  if (sameStore && sameLog) {
    throw new FuelError('REFUSED', 'there is nothing to copy to: set EVENTSTORE_URL, MONGODB_URL or both');
  }
  const operations = await source.store.readStream(OPERATIONS_STREAM);
  const [first] = operations;
  if (first === undefined) throw new Error('the source has no name');
  const known = new Set(operations.map(({ id }) => id));
  const inTarget = sameStore ? [] : await target.store.readStream(OPERATIONS_STREAM);
  const own = copyMarks(inTarget.filter(({ id }) => !known.has(id)));
  const moved = [...copyMarks(operations), ...own].findLast(({ deliveries }) => deliveries !== null);
  if (moved !== undefined && sameLog) {
    throw new FuelError('REFUSED', 'the delivery log was copied to MongoDB before: set MONGODB_URL too');
  }
  const mark = own.find(({ events }) => events !== null);
  const events = sameStore
    ? ({ kind: 'none' } as const)
    : mark === undefined
      ? ({ kind: 'copy' } as const)
      : ({ kind: 'verify', mark } as const);
  const stays = events.kind === 'copy' ? 'relocate' : 'none';
  const deliveries = moved === undefined && !sameLog ? 'copy' : stays;
  return { events, deliveries, copiedBefore: moved?.deliveries ?? null, first };
}
