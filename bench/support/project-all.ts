import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/base/clock.ts';
import type { Coordination } from '../../src/base/coordination/coordination.ts';
import { silentLog } from '../../src/base/log.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import type { Position } from '../../src/event-store/recorded-event.ts';
import { runProjector } from '../../src/pull/view/projector.ts';
import type { TransactionsView } from '../../src/pull/view/transactions-view.ts';

const LOOK_EVERY_MS = 2;

/** Runs the service's own projector until the view has everything up to the current end of the log. */
export async function projectAll(options: {
  readonly store: EventStore;
  readonly view: TransactionsView;
  readonly coordination: Coordination;
  readonly onProgress?: (position: Position) => void;
  /** How often the view is asked for its position. Each time costs a round trip if it is on a server. */
  readonly lookEveryMs?: number;
}): Promise<void> {
  const { store, view, coordination, lookEveryMs = LOOK_EVERY_MS } = options;
  const target = await store.head();
  const done = new AbortController();
  const projecting = runProjector({
    store,
    view,
    coordination,
    clock: systemClock,
    log: silentLog,
    holder: 'bench',
    signal: done.signal,
  });
  const watching = (async () => {
    for (;;) {
      const position = (await view.checkpoint())?.position ?? 0;
      options.onProgress?.(position);
      if (position >= target) return;
      await sleep(lookEveryMs);
    }
  })();
  try {
    await Promise.race([watching, projecting]);
  } finally {
    done.abort();
    await projecting;
  }
}
