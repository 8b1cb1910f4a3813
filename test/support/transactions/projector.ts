import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { Coordination } from '../../../src/base/coordination/coordination.ts';
import { MemoryCoordination, openMemoryCoordination } from '../../../src/engines/memory/coordination.ts';
import { MemoryView, openMemoryView } from '../../../src/engines/memory/view.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { PROJECTOR_LEASE, type ProjectorOptions, runProjector } from '../../../src/pull/view/projector.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { openPushStores, type PushStores } from '../deliveries/push-stores.ts';
import { until } from '../waiting.ts';
import { rowIn } from './row-in.ts';

export const WAIT_MS = 10_000;

/** What one process that projects does and says. */
export interface RunningProjector {
  readonly ended: Promise<void>;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** Whether a line with this text was logged, so often at least. */
  readonly said: (text: string, times?: number) => boolean;
  readonly stop: () => Promise<void>;
}

export type Projection<Store extends EventStore> = ReturnType<typeof projectionOf<Store>>;

/** An event store, a view and leases in memory, on which projectors are started. */
export function openProjection() {
  return projectionOf(openPushStores());
}

/** As `openProjection`, on these stores. */
export function projectionOf<Store extends EventStore>(stores: PushStores<Store>) {
  const { clock, store } = stores;
  const stored = new MemoryView();
  const view = openMemoryView(stored, clock);
  const coordination = openMemoryCoordination(new MemoryCoordination(), clock);
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
    until(async () => typeof (await rowIn(view, id)) === 'object', WAIT_MS);
  return { ...stores, stored, view, coordination, start, holder, shows };
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
