import { accessRows } from '../../../src/accounts/rows/read-rows.ts';
import { ACCOUNTS_STORE } from '../../../src/accounts/rows/tables.ts';
import { CONTROL_STORE, openCoordination } from '../../../src/base/coordination/stored-coordination.ts';
import { createMemoryRateWindows } from '../../../src/pull/edge/rate-windows/memory.ts';
import { openRequestJournal, REQUESTS_STORE } from '../../../src/pull/stored-requests.ts';
import { openTransactionsView } from '../../../src/pull/view/view.ts';
import { openDeliveryLog } from '../../../src/push/log/open.ts';
import { DELIVERY_STORE } from '../../../src/push/log/tables.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import type { StorePlan } from '../../../src/tables/plan.ts';
import type { ChangeListener, ChangeSignal, Tables } from '../../../src/tables/tables.ts';
import { MemoryLog, openMemoryEventStore } from '../../support/engines/memory-log.ts';
import { MemoryStores } from '../../support/engines/memory-stores.ts';
import { type GroupFaults, MemoryGroups, openMemoryGroups } from './groups.ts';
import { StoredDeliveries } from './stored-deliveries.ts';

export type StoreName =
  | 'store'
  | 'subscriptions'
  | 'view'
  | 'queue'
  | 'coordination'
  | 'accounts'
  | 'requests';

/** Wraps every call of a process to a store. */
export type Gate = <T>(
  store: StoreName,
  method: string,
  args: readonly unknown[],
  call: () => Promise<T>,
) => Promise<T>;

/** The stored data, which outlives every process. */
export class Stores {
  readonly log = new MemoryLog();
  readonly tables = new MemoryStores();
  readonly queue: StoredDeliveries;
  readonly groups: MemoryGroups;
  /** The clock of the servers, which stamp what is stored. */
  readonly clock: { now(): number };

  constructor(clock: { now(): number }, faults: GroupFaults) {
    this.clock = clock;
    this.queue = new StoredDeliveries(this.tables);
    this.groups = new MemoryGroups(this.log, clock, faults);
  }
}

/** The stores that a process has opened, and how they end with it. */
interface Opened {
  readonly engines: Engines;
  /** Closes everything, as the operating system does for a killed process. */
  end(): void;
}

const GENERATORS = new Set(['subscribe']);

/** Opens the stores for one process. Every call passes the gate. */
export function openStores(stores: Stores, gate: Gate, within: (run: () => void) => void): Opened {
  const { clock } = stores;
  const closing: (() => unknown)[] = [];
  const opened = <T extends { close?(): unknown }>(name: StoreName, port: T): T => {
    closing.push(() => port.close?.());
    return gated(name, port, gate);
  };
  const tables = (name: StoreName, plan: StorePlan): Tables => {
    const opened = stores.tables.open(plan, clock);
    closing.push(() => opened.close());
    return gatedTables(name, opened, gate);
  };
  const groups = openMemoryGroups(stores.groups);
  closing.push(() => {
    for (const consumer of groups.consumers) stores.groups.release(consumer);
  });
  const log = tables('queue', DELIVERY_STORE);
  const accounts = tables('accounts', ACCOUNTS_STORE);
  const rawQueue = openDeliveryLog({ ...log, changed: changedWithin(log.changed, within) }, clock);
  const ports = {
    store: opened('store', openMemoryEventStore(stores.log, clock)),
    subscriptions: { ...gated('subscriptions', groups, gate), consume: consuming(groups, gate) },
    view: openTransactionsView((plan) => tables('view', plan), clock),
    queue: gated('queue', rawQueue, gate),
    coordination: openCoordination(tables('coordination', CONTROL_STORE)),
    accounts: { ...accounts, changed: changedWithin(accounts.changed, within) },
    requests: openRequestJournal(tables('requests', REQUESTS_STORE)),
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
    accounts: () => ports.accounts,
    access: () => accessRows(ports.accounts),
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

/** Makes listeners run in their process, if it is alive. */
function changedWithin(raw: ChangeSignal, within: (run: () => void) => void): ChangeSignal {
  const listeners = new Map<object, ChangeListener>();
  return {
    add(listener) {
      const own = { notify: () => within(() => listener.notify()) };
      listeners.set(listener, own);
      raw.add(own);
    },
    remove(listener) {
      const own = listeners.get(listener);
      if (own) raw.remove(own);
      listeners.delete(listener);
    },
    notify: () => raw.notify(),
  };
}

const TABLE_CALLS = ['get', 'find', 'firsts', 'count', 'write', 'makeIndexes', 'now', 'destroy'] as const;

function gatedTables(name: StoreName, tables: Tables, gate: Gate): Tables {
  const { changed } = tables;
  const calls = TABLE_CALLS.map((method) => {
    const call = tables[method].bind(tables) as (...args: unknown[]) => Promise<unknown>;
    return [method, (...args: unknown[]) => gate(name, method, args, () => call(...args))];
  });
  return { ...Object.fromEntries(calls), changed, close: () => tables.close() };
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
