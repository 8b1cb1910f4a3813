import type { Clock } from '../../base/clock.ts';
import { type Decision, record, refused, unchanged } from '../../domain/decision.ts';
import {
  isRecordingType,
  type TransactionEvent,
  transactionStream,
} from '../../domain/transaction-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { batchesOf } from '../../event-store/batch-bytes.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import type { DeliverySummary } from '../../push/queue/delivery.ts';
import type { DeliveryReads } from '../../push/queue/delivery-queue.ts';
import type { NumberedLine } from '../lines/lines.ts';
import { recordLines } from '../lines/record-lines.ts';
import { type ImportEntry, recordedBy } from './import-log.ts';
import { transactionAfter, UNREADABLE } from './import-transactions.ts';

const IDS_PER_READ = 500;

export interface VoidImportOptions {
  readonly store: Pick<EventStore, 'head' | 'subscribe' | 'readStream' | 'readStreams' | 'append'>;
  readonly queue: Pick<DeliveryReads, 'page' | 'get'>;
  readonly author: Author;
  readonly clock: Clock;
  readonly reason: string;
  /** Counts what would be voided, and records nothing. */
  readonly dryRun?: boolean | undefined;
  readonly onRefused: (transaction: string, reason: string) => void;
  readonly onProgress: (counts: VoidCounts) => void;
  /** Ends the work between two batches. */
  readonly signal: AbortSignal;
}

/** Numbers of transactions that the import recorded and that have not been erased. */
export interface VoidCounts {
  readonly voided: number;
  /** Already voided or cancelled. */
  readonly already: number;
}

export interface VoidOutcome extends VoidCounts {
  /** Transactions that a receiver has accepted. It is not told of the void. */
  readonly pushed: number;
  /** The number of transactions that the receiver of each key has, by the key's prefix. */
  readonly pushedTo: ReadonlyMap<string, number>;
}

/**
 * Voids what an import recorded and customers still see. After an interruption, repeating the command continues with the
 * rest.
 */
export async function voidImport(entry: ImportEntry, options: VoidImportOptions): Promise<VoidOutcome> {
  const { store, queue, reason, onRefused, onProgress } = options;
  const ids: number[] = [];
  const lines = async function* (): AsyncGenerator<NumberedLine<number>[]> {
    for await (const { id, events } of recordedBy(store, entry)) {
      if (!events.some(({ type }) => isRecordingType(type))) continue;
      ids.push(id);
      yield [{ ok: true, number: id, characters: 0, stream: transactionStream(id), content: id }];
    }
  };
  const { recorded, unchanged: already } = await recordLines<number, TransactionEvent>({
    ...options,
    lines: lines(),
    batchCharacters: Number.POSITIVE_INFINITY,
    decider: (history) => (id, atMs) => decideVoid(id, transactionAfter(history), { reason, atMs }),
    onRefused: (id, why) => onRefused(`transaction ${id}`, why),
    onProgress: (counts) => onProgress({ voided: counts.recorded, already: counts.unchanged }),
  });
  return { voided: recorded, already, ...(await pushedOf(ids, queue)) };
}

function decideVoid(
  id: number,
  state: ReturnType<typeof transactionAfter>,
  { reason, atMs }: { readonly reason: string; readonly atMs: number },
): Decision<TransactionEvent> {
  if (state === 'unreadable') return refused(UNREADABLE);
  if (state.kind !== 'recorded') return unchanged;
  const { account_id } = state.recording.data;
  const data = { transaction_id: id, account_id, voided_at: formatDateTime(atMs), reason };
  return record({ type: 'TransactionVoided', data });
}

async function pushedOf(
  ids: readonly number[],
  queue: VoidImportOptions['queue'],
): Promise<Pick<VoidOutcome, 'pushed' | 'pushedTo'>> {
  const pushed = new Set<number | null>();
  const pushedTo = new Map<string, number>();
  for (const part of batchesOf(ids, { maxItems: IDS_PER_READ, bytesOf: () => 0 })) {
    for (const { prefix, transactionId } of await acceptedOf(part, queue)) {
      pushed.add(transactionId);
      pushedTo.set(prefix, (pushedTo.get(prefix) ?? 0) + 1);
    }
  }
  return { pushed: pushed.size, pushedTo };
}

/** The deliveries that receivers accepted. A redelivered one has the state of its redelivery, so its attempts are read. */
async function acceptedOf(
  transactionIds: readonly number[],
  queue: VoidImportOptions['queue'],
): Promise<readonly DeliverySummary[]> {
  const { deliveries: logged } = await queue.page({ transactionIds }, { limit: Infinity });
  const again = logged.filter(({ state, cycle }) => state !== 'delivered' && cycle > 1);
  const whole = await queue.get(again);
  return [
    ...logged.filter(({ state }) => state === 'delivered'),
    ...whole.filter(({ attempts }) => attempts.some(({ outcome }) => outcome.ok)),
  ];
}
