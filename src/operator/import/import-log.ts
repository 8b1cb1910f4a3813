import { world } from '../../base/world.ts';
import {
  importStream,
  importsStream,
  MAX_IMPORT_ACCOUNTS,
  OPERATIONS_STREAM,
  type OperationsEvent,
} from '../../domain/operations-events.ts';
import { transactionIdOf, transactionStream } from '../../domain/transaction-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { membersOf, recordedAtMs } from '../../event-store/codec.ts';
import type { Append, EventStore } from '../../event-store/event-store.ts';
import { newEvent } from '../../event-store/new-event.ts';
import { readOperation } from '../../event-store/operations.ts';
import { readInParts } from '../../event-store/reads.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import type { LineCounts } from '../lines/record-lines.ts';
import { type ImportOptions, importTransactions } from './import-transactions.ts';

export interface RecordedImport {
  readonly counts: LineCounts;
  /** `undefined` where nothing was recorded and nothing refused: it is no import that anybody looks for. */
  readonly importId: string | undefined;
}

type ImportedStore = ImportOptions['store'];

/**
 * Imports, and records that it was done: its start before anything else, each append's transactions before that append,
 * and its end. So what it recorded can be told also after a kill at any time.
 */
export async function recordImport(
  options: Omit<ImportOptions, 'dryRun' | 'readsFirst'> & { readonly source: string },
): Promise<RecordedImport> {
  const { source, store, clock } = options;
  const author = { ...options.author, correlationId: options.author.correlationId ?? world.randomUUID() };
  const startedAt = formatDateTime(clock.now());
  const importId = `${startedAt.slice(0, 10)}-${author.correlationId.slice(0, 8)}`;
  const eventOf = (stream: string, event: OperationsEvent): Append => ({
    stream,
    expected: 'any',
    events: [newEvent(event, author, clock.now())],
  });
  const month = importsStream(monthOf(importId));
  let isStarted = false;
  const start = async (): Promise<void> => {
    if (isStarted) return;
    await store.append([eventOf(month, { type: 'ImportStarted', data: { import_id: importId, source } })]);
    isStarted = true;
  };
  const planned: ImportedStore = {
    readStreams: (streams) => store.readStreams(streams),
    async append(appends) {
      if (appends.length === 0) return [];
      const transactions = appends.flatMap(({ stream }) => transactionIdOf(stream) ?? []);
      const plan = { type: 'ImportPlanned', data: { import_id: importId, transactions } } as const;
      await start();
      await store.append([eventOf(importStream(importId), plan)]);
      return store.append(appends);
    },
  };
  const accounts = new Set<number>();
  const counts = await importTransactions({
    ...options,
    ...{ author, store: planned, readsFirst: true },
    async onRecorded(line, events) {
      if (accounts.size < MAX_IMPORT_ACCOUNTS) accounts.add(line.accountId);
      await options.onRecorded?.(line, events);
    },
  });
  if (!isStarted && counts.refused === 0) return { counts, importId: undefined };
  const ofAccounts = [...accounts].sort((a, b) => a - b);
  const end = { import_id: importId, ...counts, accounts: ofAccounts };
  await start();
  await store.append([eventOf(month, { type: 'ImportEnded', data: end })]);
  return { counts, importId };
}

/** What the stream of its month says of an import. */
export interface ImportEntry {
  readonly id: string;
  readonly started: RecordedEvent;
  readonly source: string;
  readonly end:
    | (LineCounts & { readonly accounts: readonly number[]; readonly endedAtMs: number })
    | undefined;
}

/** The newest first, those that began at `sinceMs` or later. */
export async function* listImports(
  store: Pick<EventStore, 'readStream'>,
  { sinceMs, nowMs }: { readonly sinceMs?: number | undefined; readonly nowMs: number },
): AsyncGenerator<ImportEntry, void> {
  const [first] = await store.readStream(OPERATIONS_STREAM);
  if (first === undefined) return;
  const fromMs = Math.max(sinceMs ?? 0, 0);
  const oldest = monthOf(formatDateTime(Math.max(fromMs, recordedAtMs(first))));
  for (let month = monthOf(formatDateTime(nowMs)); month >= oldest; month = monthBefore(month)) {
    for (const entry of (await importsOf(store, month)).toReversed())
      if (recordedAtMs(entry.started) >= fromMs) yield entry;
  }
}

const IMPORT_ID = /^\d{4}-\d{2}-\d{2}-[0-9a-f]{8}$/;

/** `undefined` where there is no such import. */
export async function findImport(
  store: Pick<EventStore, 'readStream'>,
  importId: string,
): Promise<ImportEntry | undefined> {
  if (!IMPORT_ID.test(importId)) return undefined;
  return (await importsOf(store, monthOf(importId))).find(({ id }) => id === importId);
}

/** What an import recorded of one transaction. */
export interface ImportedTransaction {
  readonly id: number;
  readonly events: readonly RecordedEvent[];
  /** Of the transaction, also what others recorded. */
  readonly history: readonly RecordedEvent[];
}

/** What an import recorded and was not erased since; only some is in memory at a time. */
export async function* recordedBy(
  store: Pick<EventStore, 'readStream' | 'readStreams'>,
  { id, started }: ImportEntry,
): AsyncGenerator<ImportedTransaction, void> {
  const correlationOf = (event: RecordedEvent): unknown => membersOf(event.metadata).correlation_id;
  const plans = (await store.readStream(importStream(id))).flatMap((event) => {
    const decoded = readOperation(event);
    return decoded?.type === 'ImportPlanned' ? decoded.data.transactions : [];
  });
  const idOf = new Map(plans.map((transaction) => [transactionStream(transaction), transaction]));
  for await (const [stream, history] of readInParts(store, [...idOf.keys()])) {
    const events = history.filter((event) => correlationOf(event) === correlationOf(started));
    if (events.length > 0) yield { id: idOf.get(stream) ?? 0, events, history };
  }
}

/** Those that began in a month, the oldest first. */
async function importsOf(store: Pick<EventStore, 'readStream'>, month: string): Promise<ImportEntry[]> {
  const entries = new Map<string, ImportEntry>();
  for (const event of await store.readStream(importsStream(month))) {
    const decoded = readOperation(event);
    if (decoded?.type === 'ImportStarted') {
      const { import_id: id, source } = decoded.data;
      entries.set(id, { id, source, started: event, end: undefined });
    } else if (decoded?.type === 'ImportEnded') {
      const entry = entries.get(decoded.data.import_id);
      const end = { ...decoded.data, endedAtMs: recordedAtMs(event) };
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
