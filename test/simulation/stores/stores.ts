import { StoredDirectory } from '../../../src/accounts/directory/rows/stored-directory.ts';
import { keysFor } from '../../../src/accounts/master-key.ts';
import type { Config } from '../../../src/base/config/config.ts';
import { MemoryCoordination, openMemoryCoordination } from '../../../src/engines/memory/coordination.ts';
import { MemoryRows, openMemoryDirectoryRows } from '../../../src/engines/memory/directory-rows.ts';
import { MemoryLog, openMemoryEventStore } from '../../../src/engines/memory/event-store.ts';
import { MemoryDeliveries } from '../../../src/engines/memory/queue/deliveries.ts';
import { openMemoryQueue } from '../../../src/engines/memory/queue/queue.ts';
import { openMemoryRequests } from '../../../src/engines/memory/requests.ts';
import { MemoryView, openMemoryView } from '../../../src/engines/memory/view.ts';
import { createMemoryRateWindows } from '../../../src/pull/edge/rate-windows/memory.ts';
import type { RequestRow } from '../../../src/pull/request-journal.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { type GroupFaults, MemoryGroups, openMemoryGroups } from './groups.ts';

export type StoreName =
  | 'store'
  | 'subscriptions'
  | 'view'
  | 'queue'
  | 'coordination'
  | 'directory'
  | 'requests';

/** Stands before and after every call of a process to a store. */
export type Gate = <T>(
  store: StoreName,
  method: string,
  args: readonly unknown[],
  call: () => Promise<T>,
) => Promise<T>;

/** What is stored: it outlives every process. */
export class Stores {
  readonly log = new MemoryLog();
  readonly view = new MemoryView();
  readonly coordination = new MemoryCoordination();
  readonly rows = new MemoryRows();
  readonly requests: RequestRow[] = [];
  readonly queue: MemoryDeliveries;
  readonly groups: MemoryGroups;
  /** Of the servers, which stamp what is stored. */
  readonly clock: { now(): number };

  constructor(clock: { now(): number }, faults: GroupFaults) {
    this.clock = clock;
    this.queue = new MemoryDeliveries(clock);
    this.groups = new MemoryGroups(this.log, () => clock.now(), faults);
  }
}

/** Of a process: what it has opened, and how all of that ends with it. */
export interface Opened {
  readonly engines: Engines;
  /** As the operating system closes what a killed process had open. */
  end(): void;
}

const GENERATORS = new Set(['subscribe', 'rows', 'digests', 'requestsOf']);

/** The stores as one process has them: every call passes the gate. */
export function openStores(
  stores: Stores,
  config: Config,
  gate: Gate,
  within: (run: () => void) => void,
): Opened {
  const { clock } = stores;
  const closing: (() => unknown)[] = [];
  const opened = <T extends { close?(): unknown }>(name: StoreName, port: T): T => {
    closing.push(() => port.close?.());
    return gated(name, port, gate);
  };
  const groups = openMemoryGroups(stores.groups);
  closing.push(() => {
    for (const consumer of groups.consumers) stores.groups.release(consumer);
  });
  const rawQueue = openMemoryQueue(stores.queue, clock);
  const listeners = new Map<object, { notify(): void }>();
  const changed: typeof rawQueue.changed = {
    add(listener) {
      const own = { notify: () => within(() => listener.notify()) };
      listeners.set(listener, own);
      rawQueue.changed.add(own);
    },
    remove(listener) {
      const own = listeners.get(listener);
      if (own) rawQueue.changed.remove(own);
      listeners.delete(listener);
    },
  };
  const ports = {
    store: opened('store', openMemoryEventStore(stores.log, clock)),
    subscriptions: { ...gated('subscriptions', groups, gate), consume: consuming(groups, gate) },
    view: opened('view', openMemoryView(stores.view, clock)),
    queue: { ...opened('queue', rawQueue), changed },
    coordination: opened('coordination', openMemoryCoordination(stores.coordination, clock)),
    requests: opened('requests', openMemoryRequests(stores.requests)),
    directory: new StoredDirectory(
      opened('directory', openMemoryDirectoryRows(stores.rows)),
      keysFor('fuel: seal of the stored directory', config),
    ),
  };
  const end = (): void => {
    for (const close of closing) void close();
  };
  const engines: Engines = {
    state: async () => 'current',
    store: () => ports.store,
    subscriptions: () => ports.subscriptions,
    view: () => ports.view,
    queue: () => ports.queue,
    coordination: () => ports.coordination,
    directory: () => ports.directory,
    requests: () => ports.requests,
    rateWindows: () => createMemoryRateWindows({ maxIds: 1_000 }),
    embedded: [],
    remote: [],
    close: async () => end(),
  };
  return { engines, end };
}

function gated<T extends object>(name: StoreName, port: T, gate: Gate): T {
  const members = Object.entries(port).map(([method, value]) => {
    if (typeof value !== 'function' || method === 'close') return [method, value];
    if (GENERATORS.has(method)) {
      return [method, (...args: unknown[]) => gatedSteps({ name, method, args }, value(...args), gate)];
    }
    return [method, (...args: unknown[]) => gate(name, method, args, () => value(...args))];
  });
  return Object.fromEntries(members);
}

async function* gatedSteps<T>(
  { name, method, args }: { name: StoreName; method: string; args: readonly unknown[] },
  steps: AsyncIterable<T>,
  gate: Gate,
): AsyncGenerator<T> {
  const iterator = steps[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await gate(name, `${method}.next`, args, () => iterator.next());
      if (done) return;
      yield value;
    }
  } finally {
    void iterator.return?.();
  }
}

function consuming(
  groups: Stores['groups'] extends never ? never : ReturnType<typeof openMemoryGroups>,
  gate: Gate,
) {
  return (group: string, options: Parameters<typeof groups.consume>[1]) => {
    const consumer = groups.consume(group, options);
    const { ack, retry, park } = gated(
      'subscriptions',
      { ack: consumer.ack, retry: consumer.retry, park: consumer.park },
      gate,
    );
    const steps = (): AsyncGenerator =>
      gatedSteps({ name: 'subscriptions', method: 'consume', args: [group] }, consumer, gate);
    return { ack, retry, park, [Symbol.asyncIterator]: steps } as typeof consumer;
  };
}
