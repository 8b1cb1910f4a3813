import type { Clock } from '../../base/clock.ts';
import { world } from '../../base/world.ts';
import type { Environment } from '../../domain/account-events.ts';
import type { OperationsEvent } from '../../domain/operations-events.ts';
import { isWithdrawalType } from '../../domain/transaction-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { batchesOf, jsonBytes } from '../../event-store/batch-bytes.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { recordOperations } from '../../event-store/operations.ts';
import { AccountHistory } from '../../push/fan-out/account-history.ts';
import { type DecisionContext, decideAsOf, newDelivery } from '../../push/fan-out/decide-event.ts';
import { owedOf } from '../../push/log/tables.ts';
import type { NewDelivery } from '../../push/queue/delivery.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { wholeStreams } from './compare-log.ts';
import { isSame, type OwedDeliveryId, recordingIn } from './verify-deliveries.ts';

const BATCH = 100;

export interface RepairOptions {
  readonly store: EventStore;
  readonly queue: DeliveryQueue;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
  readonly author: Author;
  readonly onProgress?: (stored: number) => void;
}

/** The number of deliveries that were stored, and how many of them will be sent. */
export interface RepairedDeliveries {
  readonly stored: number;
  readonly sent: number;
}

/**
 * Stores missing deliveries, which are due at once; those of voided or cancelled transactions are stored as withdrawn, and
 * none is stored for a transaction that has been erased. With `newLog` the log replaces the one that was lost. Events are
 * recorded last, so that an interrupted repair can be repeated.
 */
export async function repairDeliveries(
  missing: readonly OwedDeliveryId[],
  { newLog }: { readonly newLog: boolean },
  { onProgress, ...options }: RepairOptions,
): Promise<RepairedDeliveries> {
  const { store, queue, clock, author } = options;
  const history = new AccountHistory({ store });
  let [stored, sent] = [0, 0];
  for (let at = 0; at < missing.length; at += BATCH) {
    const { owed, withdrawn } = await owedAmong(missing.slice(at, at + BATCH), { ...options, history });
    if (withdrawn.size > 0)
      await queue.change({ kind: 'withdraw', transactionIds: [...withdrawn] }, clock.now());
    for (const batch of batchesOf(owed, { maxItems: BATCH, bytesOf: ({ record }) => jsonBytes(record) })) {
      await queue.enqueue(batch);
      const found = await storedOf(batch, queue);
      stored += found.length;
      sent += found.filter(({ transactionId }) => !withdrawn.has(transactionId)).length;
      onProgress?.(stored);
      await world.nextTurn();
    }
  }
  const events: OperationsEvent[] = [];
  if (newLog) {
    const log = await queue.logId();
    const data = { log_id: log.id, started_at: formatDateTime(log.startedAtMs) };
    events.push({ type: 'DeliveryLogStarted', data });
  }
  if (stored > 0 || newLog) {
    events.push({ type: 'AgreementRepaired', data: { what: 'deliveries', repaired: stored } });
  }
  if (events.length > 0) await recordOperations(store, events, { author, clock });
  return { stored, sent };
}

/** Returns the deliveries that the log has now, without those whose row there is a different one. */
async function storedOf(batch: readonly NewDelivery[], queue: DeliveryQueue): Promise<NewDelivery[]> {
  const transactionIds = batch.map(({ transactionId }) => transactionId);
  const { deliveries: logged } = await queue.page({ transactionIds }, { limit: Infinity });
  const byKey = new Map(logged.map((delivery) => [owedOf(delivery), delivery]));
  return batch.filter((delivery) => {
    const found = byKey.get(owedOf(delivery));
    return found !== undefined && isSame(found, delivery);
  });
}

/** Decides the missing deliveries once more. Also returns the transactions that were voided or cancelled. */
async function owedAmong(
  missing: readonly OwedDeliveryId[],
  { store, ...context }: DecisionContext & Pick<RepairOptions, 'store'>,
): Promise<{ readonly owed: readonly NewDelivery[]; readonly withdrawn: ReadonlySet<number> }> {
  const wanted = new Set(missing.map(({ id }) => id));
  const transactionIds = new Set(missing.map(({ transactionId }) => transactionId));
  const found: NewDelivery[] = [];
  const withdrawn = new Set<number>();
  for (const stream of await wholeStreams(store, [...transactionIds])) {
    const recording = recordingIn(stream);
    if (recording === undefined || recording === 'unreadable') continue;
    const decision = await decideAsOf(recording.event, recording.row, context);
    if ('unreadable' in decision) continue;
    const nowMs = context.clock.now();
    for (const owed of decision.owed) {
      const delivery = newDelivery({ ...recording, owed, nowMs });
      if (wanted.has(delivery.id)) found.push(delivery);
    }
    if (stream.events.some(({ event }) => isWithdrawalType(event.type))) withdrawn.add(stream.id);
  }
  return { owed: found, withdrawn };
}
