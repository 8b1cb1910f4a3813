import type { Clock } from '../../clock.ts';
import type { Coordination } from '../../coordination/coordination.ts';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import { TRANSACTION_STREAMS } from '../../domain/transaction-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { type Author, newEvent } from '../../event-store/new-event.ts';
import { readToEnd } from '../../event-store/read-to-end.ts';
import { projectEvent } from '../project-event.ts';
import { PROJECTOR_LEASE, VIEW_NAME } from './projector.ts';
import type { TransactionsView } from './transactions-view.ts';

/** To count more takes longer than an operator waits. */
const MAX_COUNTED = 100_000;

export interface ProjectionStatus {
  readonly name: string;
  readonly position: number;
  /** Age of the first event not yet in the view; 0 when there is none. */
  readonly lag_seconds: number;
  /** `null` where there are too many to count. */
  readonly lag_events: number | null;
  readonly parked: number;
  readonly holder: string | null;
}

/** How far the transactions view is behind the log, and which projector is active. */
export async function projectionStatus(
  store: EventStore,
  view: TransactionsView,
  coordination: Coordination,
  clock: Clock,
): Promise<ProjectionStatus> {
  const position = (await view.checkpoint())?.position ?? 0;
  let behind = 0;
  let oldestMs: number | undefined;
  for await (const { events } of readToEnd(store, { prefixes: [TRANSACTION_STREAMS], after: position })) {
    oldestMs ??= events[0]?.recordedAtMs;
    behind += events.length;
    if (behind > MAX_COUNTED) break;
  }
  return {
    name: VIEW_NAME,
    position,
    lag_seconds: oldestMs === undefined ? 0 : Math.max(0, Math.round((clock.now() - oldestMs) / 1000)),
    lag_events: behind > MAX_COUNTED ? null : behind,
    parked: await view.countParked(),
    holder: (await coordination.holder(PROJECTOR_LEASE))?.holder ?? null,
  };
}

/** Applies parked events again: all of them, or the one at position `only`. Records `ParkedRetried`. */
export async function retryParked(
  store: EventStore,
  view: TransactionsView,
  options: { readonly only: number | undefined; readonly author: Author; readonly atMs: number },
): Promise<{ readonly retried: number; readonly still_parked: number }> {
  const wanted = (await view.parked()).filter(
    (event) => options.only === undefined || event.position === options.only,
  );
  const positions: number[] = [];
  for (const { stream, revision, position } of wanted) {
    const [event] = await store.readStream(stream, { fromRevision: revision });
    if (event === undefined) continue; // its stream was erased: there is nothing to apply
    await view.retry([projectEvent(event)]);
    positions.push(position);
  }
  if (positions.length > 0) {
    const data = { projection: VIEW_NAME, positions };
    const event = newEvent({ type: 'ParkedRetried', data }, options.author, options.atMs);
    await store.append([{ stream: OPERATIONS_STREAM, expected: 'any', events: [event] }]);
  }
  const remaining = new Set((await view.parked()).map((event) => event.position));
  return {
    retried: positions.length,
    still_parked: positions.filter((position) => remaining.has(position)).length,
  };
}
