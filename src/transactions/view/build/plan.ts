import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import type { EventStore, Position } from '../../../event-store/event-store.ts';
import { plannedUpTo, SEGMENT_EVENTS } from '../segments.ts';
import type { ViewBuild } from '../view-builds.ts';

/**
 * Plans what the build's segments do not cover yet, up to `target`. With `splits` it reads that part of the log once to
 * find where to split it, while workers apply what is planned; otherwise it is one segment.
 */
export async function planSegments(options: {
  readonly store: EventStore;
  readonly build: ViewBuild;
  readonly target: Position;
  readonly splits: boolean;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { store, build, target, splits, signal } = options;
  let after = plannedUpTo(await build.segments());
  if (after >= target) return;
  if (!splits) return build.plan([{ after, upTo: target }]);
  let events = 0;
  for await (const batch of store.subscribe({ prefixes: [TRANSACTION_STREAMS], after, signal })) {
    if (batch.position >= target) return build.plan([{ after, upTo: target }]);
    events += batch.events.length;
    if (events < SEGMENT_EVENTS) continue;
    await build.plan([{ after, upTo: batch.checkpoint }]);
    after = batch.checkpoint;
    events = 0;
  }
}
