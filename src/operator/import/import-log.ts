import { world } from '../../base/world.ts';
import {
  importsStream,
  MAX_IMPORT_ACCOUNTS,
  OPERATIONS_STREAM,
  type OperationsEvent,
} from '../../domain/operations-events.ts';
import { TRANSACTION_STREAMS, transactionIdOf } from '../../domain/transaction-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { membersOf, occurredAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { newEvent } from '../../event-store/new-event.ts';
import { readOperation } from '../../event-store/operations.ts';
import { readInParts, readToEnd } from '../../event-store/reads.ts';
import type { Position, RecordedEvent } from '../../event-store/recorded-event.ts';
import type { LineCounts } from '../lines/record-lines.ts';
import { type ImportOptions, importTransactions } from './import-transactions.ts';

export interface RecordedImport {
  readonly counts: LineCounts;
  /** `undefined` if nothing was recorded or refused: nobody will look for such an import. */
  readonly importId: string | undefined;
}

/**
 * Imports and keeps a record of it: its start before everything else, and its end after everything else. So what it recorded can
 * be found between the two, or after its start if it was killed.
 */
export async function recordImport(
  options: Omit<ImportOptions, 'dryRun' | 'onAppend' | 'onRecorded'> & { readonly source: string },
): Promise<RecordedImport> {
  const { source, store, clock } = options;
  const author = { ...options.author, correlationId: options.author.correlationId ?? world.randomUUID() };
  const importId = `${formatDateTime(clock.now()).slice(0, 10)}-${author.correlationId.slice(0, 8)}`;
  const month = importsStream(monthOf(importId));
  const append = async (event: OperationsEvent): Promise<void> => {
    const events = [newEvent(event, author, clock.now())];
    await store.append([{ stream: month, expected: 'any', events }]);
  };
  let isStarted = false;
  const start = async (): Promise<void> => {
    if (!isStarted) await append({ type: 'ImportStarted', data: { import_id: importId, source } });
    isStarted = true;
  };
  const accounts = new Set<number>();
  const counts = await importTransactions({
    ...options,
    author,
    onAppend: start,
    async onRecorded({ accountId }) {
      if (accounts.size < MAX_IMPORT_ACCOUNTS) accounts.add(accountId);
    },
  });
  if (!isStarted && counts.refused === 0) return { counts, importId: undefined };
  await start();
  const end = { import_id: importId, ...counts, accounts: [...accounts].sort((a, b) => a - b) };
  await append({ type: 'ImportEnded', data: end });
  return { counts, importId };
}

/** An import as the stream of its month has it. `end` is missing if it was killed or still runs. */
export interface ImportEntry {
  readonly id: string;
  readonly started: RecordedEvent;
  readonly source: string;
  readonly end:
    | (LineCounts & {
        readonly accounts: readonly number[];
        readonly endedAtMs: number;
        readonly position: Position;
      })
    | undefined;
}

/** Yields the imports that began at `sinceMs` or later, newest first. */
export async function* listImports(
  store: Pick<EventStore, 'readStream'>,
  { sinceMs, nowMs }: { readonly sinceMs?: number | undefined; readonly nowMs: number },
): AsyncGenerator<ImportEntry, void> {
  const [first] = await store.readStream(OPERATIONS_STREAM);
  if (first === undefined) return;
  const fromMs = Math.max(sinceMs ?? 0, 0);
  const oldest = monthOf(formatDateTime(Math.max(fromMs, occurredAtMs(first))));
  for (let month = monthOf(formatDateTime(nowMs)); month >= oldest; month = monthBefore(month)) {
    for (const entry of (await importsOf(store, month)).toReversed())
      if (occurredAtMs(entry.started) >= fromMs) yield entry;
  }
}

const IMPORT_ID = /^\d{4}-\d{2}-\d{2}-[0-9a-f]{8}$/;

/** Returns `undefined` if there is no such import. */
export async function findImport(
  store: Pick<EventStore, 'readStream'>,
  importId: string,
): Promise<ImportEntry | undefined> {
  if (!IMPORT_ID.test(importId)) return undefined;
  return (await importsOf(store, monthOf(importId))).find(({ id }) => id === importId);
}

/** The events of one transaction that an import recorded. */
export interface ImportedTransaction {
  readonly id: number;
  readonly events: readonly RecordedEvent[];
  /** All events of the transaction. */
  readonly history: readonly RecordedEvent[];
}

/**
 * Yields what an import recorded and has not been erased since, found in the log by the import's correlation id. Only some of it
 * is in memory at a time.
 */
export async function* recordedBy(
  store: Pick<EventStore, 'head' | 'subscribe' | 'readStream' | 'readStreams'>,
  entry: ImportEntry,
): AsyncGenerator<ImportedTransaction, void> {
  const correlationOf = (event: RecordedEvent): unknown => membersOf(event.metadata).correlation_id;
  const isOfImport = (event: RecordedEvent): boolean => correlationOf(event) === correlationOf(entry.started);
  const seen = new Set<string>();
  for await (const candidates of streamsSince(store, entry, isOfImport)) {
    const fresh = [...new Set(candidates)].filter((stream) => !seen.has(stream));
    for (const stream of fresh) seen.add(stream);
    for await (const [stream, history] of readInParts(store, fresh)) {
      const events = history.filter(isOfImport);
      const id = transactionIdOf(stream);
      if (events.length > 0 && id !== undefined) yield { id, events, history };
    }
  }
}

/**
 * Yields the streams that may hold events of an import, some more than once: those in the log between its start and its end, and
 * those that were redacted later, since an engine may have moved their events behind the end.
 */
async function* streamsSince(
  store: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>,
  { started, end }: ImportEntry,
  isOfImport: (event: RecordedEvent) => boolean,
): AsyncGenerator<string[], void> {
  const until = end?.position ?? (await store.head());
  for await (const { events, position } of readToEnd(store, {
    prefixes: [TRANSACTION_STREAMS],
    after: started.position,
  })) {
    yield events.filter(isOfImport).map(({ stream }) => stream);
    if (position >= until) break;
  }
  for (const event of await store.readStream(OPERATIONS_STREAM)) {
    const operation = event.position > started.position ? readOperation(event) : undefined;
    if (operation?.type === 'DriverRedacted') yield operation.data.leaves.map(({ stream }) => stream);
  }
}

/** The imports that began in a month, oldest first. */
async function importsOf(store: Pick<EventStore, 'readStream'>, month: string): Promise<ImportEntry[]> {
  const entries = new Map<string, ImportEntry>();
  for (const event of await store.readStream(importsStream(month))) {
    const decoded = readOperation(event);
    if (decoded?.type === 'ImportStarted') {
      const { import_id: id, source } = decoded.data;
      entries.set(id, { id, source, started: event, end: undefined });
    } else if (decoded?.type === 'ImportEnded') {
      const entry = entries.get(decoded.data.import_id);
      const end = { ...decoded.data, endedAtMs: occurredAtMs(event), position: event.position };
      if (entry !== undefined) entries.set(entry.id, { ...entry, end });
    }
  }
  return [...entries.values()];
}

function monthOf(date: string): string {
  return date.slice(0, 'YYYY-MM'.length);
}

function monthBefore(month: string): string {
  return monthOf(formatDateTime(Date.parse(`${month}-01T00:00:00Z`) - 1));
}
