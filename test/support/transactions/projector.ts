import { join } from 'node:path';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { Coordination } from '../../../src/base/coordination/coordination.ts';
import { openSqliteCoordination } from '../../../src/engines/sqlite/coordination.ts';
import { openSqliteView } from '../../../src/engines/sqlite/view/view.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { PROJECTOR_LEASE, type ProjectorOptions, runProjector } from '../../../src/pull/view/projector.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { openPushStores } from '../deliveries/push-stores.ts';
import { until } from '../waiting.ts';

export const WAIT_MS = 10_000;

/** What one process that projects does and says. */
export interface RunningProjector {
  readonly ended: Promise<void>;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** Whether a line with this text was logged, so often at least. */
  readonly said: (text: string, times?: number) => boolean;
  readonly stop: () => Promise<void>;
}

/** An event store, a view and leases in a temporary folder, on which projectors are started. */
export function openProjection() {
  const stores = openPushStores();
  const { clock, folder, store } = stores;
  const view = openSqliteView({ path: join(folder, 'transactions.db'), clock });
  const coordination = openSqliteCoordination({ path: join(folder, 'control.db'), clock });
  onTestFinished(async () => {
    await coordination.close();
    await view.close();
  });

  function start(overrides: Partial<ProjectorOptions> = {}): RunningProjector {
    const lines: Record<string, unknown>[] = [];
    const stopping = new AbortController();
    const write = (line: string): void => void lines.push(JSON.parse(line));
    const log = pino({ level: 'info' }, { write });
    const { signal } = stopping;
    const parts = { store, view, coordination, clock, log, holder: 'one', signal };
    const ended = runProjector({ ...parts, ...overrides });
    ended.catch(() => undefined); // a test that expects a failure awaits it
    const stop = async (): Promise<void> => {
      stopping.abort();
      await ended;
    };
    onTestFinished(() => stop().catch(() => undefined));
    const said = (text: string, times = 1): boolean =>
      lines.filter(({ msg }) => String(msg).includes(text)).length >= times;
    return { ended, lines, said, stop };
  }

  const holder = async (): Promise<string | undefined> =>
    (await coordination.holder(PROJECTOR_LEASE))?.holder;
  const shows = (id: number): Promise<void> =>
    until(async () => typeof (await view.find(id)) === 'object', WAIT_MS);
  return { ...stores, view, coordination, start, holder, shows };
}

/** An adapter, with what is done before each call of one method; it may throw in its place. */
export function beforeCall<T extends EventStore | TransactionsView | Coordination>(
  target: T,
  method: keyof T,
  work: (...given: readonly unknown[]) => void,
): T {
  return new Proxy(target, {
    get(whole, name) {
      const call: unknown = whole[name as keyof T];
      if (typeof call !== 'function') return call;
      return (...given: unknown[]): unknown => {
        if (name === method) work(...given);
        return call.apply(whole, given);
      };
    },
  });
}
