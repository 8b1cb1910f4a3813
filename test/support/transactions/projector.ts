import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { Coordination } from '../../../src/base/coordination/coordination.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { PROJECTOR_LEASE, type ProjectorOptions, runProjector } from '../../../src/pull/view/projector.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { openPushStores, type PushStores } from '../deliveries/push-stores.ts';
import { memoryCoordination } from '../engines/coordination.ts';
import { MemoryStores } from '../engines/memory-stores.ts';
import { until } from '../waiting.ts';
import { viewInMemory } from './open-view.ts';
import { rowIn } from './row-in.ts';

/** A running projector, with its log. */
interface RunningProjector {
  readonly ended: Promise<void>;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** True if a line with this text was logged at least this often. */
  readonly said: (text: string, times?: number) => boolean;
  readonly stop: () => Promise<void>;
}

export type Projection<Store extends EventStore> = ReturnType<typeof projectionOf<Store>>;

/** Opens an event store, a view and leases in memory, and starts projectors on them. */
export function openProjection() {
  return projectionOf(openPushStores());
}

/** Like `openProjection`, but on these stores. */
export function projectionOf<Store extends EventStore>(stores: PushStores<Store>) {
  const { clock, store } = stores;
  const stored = new MemoryStores();
  const view = viewInMemory(clock, stored);
  const coordination = memoryCoordination(clock);
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
  const shows = (id: number): Promise<void> => until(async () => typeof (await rowIn(view, id)) === 'object');
  return { ...stores, stored, view, coordination, start, holder, shows };
}

/** An empty view of these stores, which also parks events of no sense at a position. */
export async function emptyView<Store extends EventStore>(opened: Projection<Store>) {
  const { store, view, clock } = opened;
  const { generation } = await view.reset(await storeIdentity(store, clock), 0);
  const parked = (stream: string, position: number, revision = 0) =>
    view.apply([{ position, stream, type: 'Odd', revision, parkReason: 'odd' }], { generation, position: 1 });
  return { ...opened, generation, parked };
}

/** Returns an adapter with a hook before each call of one method. The hook may throw instead of the method. */
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
