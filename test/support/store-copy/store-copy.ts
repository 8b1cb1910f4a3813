import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { transactionStream } from '../../../src/domain/transaction-events.ts';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import type { Append, AppendResult, EventStore } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { type CopyReport, type CopyStoreOptions, copyStore } from '../../../src/operator/copy/copy-store.ts';
import { queueInFile } from '../deliveries/open-queue.ts';
import { fileCoordination } from '../engines/coordination.ts';
import { record } from '../event-store/store-events.ts';
import { key } from '../seals/sealing.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const AUTHOR = { actor: 'test', command: 'fuel store copy' };

/** Opens the embedded stores of a folder, as one end of a copy. */
export function openEnd(folder: string, clock: Clock = systemClock) {
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock });
  const queue = queueInFile({ path: join(folder, 'deliveries.db'), clock });
  const coordination = fileCoordination(join(folder, 'control.db'), clock);
  return {
    store,
    queue,
    coordination,
    erasedStreams: () => store.erasedStreams(),
    async close() {
      await Promise.all([store.close(), queue.close(), coordination.close()]);
    },
  };
}

export type EmbeddedEnd = ReturnType<typeof openEnd>;

/** Like `openEnd`, but in a new folder, closed at the end of the test. */
export function newEnd(clock?: Clock): EmbeddedEnd {
  const end = openEnd(temporaryFolder(), clock);
  onTestFinished(() => end.close());
  return end;
}

/** Makes a store with a name, an account and three transactions, one of them erased. */
export async function sample(): Promise<EmbeddedEnd> {
  const end = newEnd();
  await storeIdentity(end.store, systemClock);
  await record(end.store, 'account-7', 'opened', 'key');
  for (const id of [1, 2, 3]) await record(end.store, `transaction-${id}`, `${id}`);
  await end.store.erase('transaction-2');
  return end;
}

/** Records a confirmed transaction for each id. */
export async function recordTransactions(
  { store }: Pick<EmbeddedEnd, 'store'>,
  ids: readonly number[],
): Promise<void> {
  for (const id of ids) {
    const data = { transaction_id: id } as never;
    const event = newEvent({ type: 'TransactionConfirmed', data }, AUTHOR, 0);
    await store.append([{ stream: transactionStream(id), expected: 'none', events: [event] }]);
  }
}

/** The report of a copy if nothing differs. */
export const PROVEN = { fault: undefined, late: [] };

export function operations(end: EmbeddedEnd): Promise<RecordedEvent[]> {
  return end.store.readStream('operations');
}

export function copyFrom(
  source: CopyStoreOptions['source'],
  target: CopyStoreOptions['target'],
  options: Partial<CopyStoreOptions> = {},
): Promise<CopyReport> {
  const common = {
    key,
    author: AUTHOR,
    clock: systemClock,
    markMoved: async () => undefined,
    onProgress: () => undefined,
  };
  return copyStore({ source, target, ...common, ...options });
}

/** Returns every event of the store in the order of its log. */
export async function logOf(store: EventStore): Promise<RecordedEvent[]> {
  const { signal } = new AbortController();
  const events: RecordedEvent[] = [];
  for await (const batch of store.subscribe({ prefixes: [], after: 0, signal })) {
    events.push(...batch.events);
    if (batch.caughtUp) break;
  }
  return events;
}

/** Returns the members of an event that a copy keeps. */
export function kept({ stream, revision, id, type, data, metadata }: RecordedEvent) {
  return { stream, revision, id, type, data, metadata };
}

/** A store like a real engine: it has system events between others, and may become unavailable during an append. */
export class RealisticStore implements EventStore {
  /** How many more appends it records before it becomes unavailable. */
  appendsLeft = Infinity;
  onUnavailable: () => void = () => undefined;
  openSubscriptions = 0;
  readonly #store: EventStore;
  #appends = 0;

  constructor(store: EventStore) {
    this.#store = store;
  }

  async append(appends: readonly Append[]): Promise<AppendResult[]> {
    const recorded = appends.slice(0, this.appendsLeft);
    this.appendsLeft -= recorded.length;
    const results = await this.#store.append(recorded);
    if (recorded.length < appends.length) {
      this.onUnavailable();
      throw new Error('the store is unavailable');
    }
    const stream = `$stats-${this.#appends++}`;
    const system = { id: crypto.randomUUID(), type: '$stats', data: {}, metadata: {} as never };
    await this.#store.append([{ stream, expected: 'any', events: [system] }]);
    return results;
  }

  readStream(...args: Parameters<EventStore['readStream']>) {
    return this.#store.readStream(...args);
  }
  readLast(stream: string) {
    return this.#store.readLast(stream);
  }
  readStreams(...args: Parameters<EventStore['readStreams']>) {
    return this.#store.readStreams(...args);
  }
  isErased(stream: string) {
    return this.#store.isErased(stream);
  }
  async *subscribe(...args: Parameters<EventStore['subscribe']>) {
    this.openSubscriptions++;
    try {
      yield* this.#store.subscribe(...args);
    } finally {
      this.openSubscriptions--;
    }
  }
  readBackwards(...args: Parameters<EventStore['readBackwards']>) {
    return this.#store.readBackwards(...args);
  }
  head() {
    return this.#store.head();
  }
  rewrite(...args: Parameters<EventStore['rewrite']>) {
    return this.#store.rewrite(...args);
  }
  erase(stream: string) {
    return this.#store.erase(stream);
  }
  close() {
    return this.#store.close();
  }
}
