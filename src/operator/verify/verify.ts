import type { Clock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import type { Rest } from '../../base/pause.ts';
import type { Environment } from '../../domain/account-events.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { operationsOf } from '../../event-store/operations.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { compareLog } from './compare-log.ts';
import type { VerifyScope } from './read-log.ts';
import { repairDeliveries } from './repair-deliveries.ts';
import { repairView } from './repair-view.ts';
import { type DeliveryAgreement, DeliverySide } from './verify-deliveries.ts';
import { type ViewAgreement, type ViewDifference, ViewSide } from './verify-view.ts';

export interface VerifyOptions {
  readonly store: EventStore;
  readonly view: () => TransactionsView;
  /** Called only if deliveries are verified. */
  readonly queue: () => DeliveryQueue;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly retentionMs: number;
  readonly author: Author;
  readonly sides: readonly ('view' | 'deliveries')[];
  readonly scope: VerifyScope;
  /** True to store what differs as it should be. */
  readonly repair: boolean;
  /**
   * The reaction if another delivery log has replaced the one that was started: refuse; leave the deliveries out, also if none
   * was started; or rebuild it, so that receivers may get events a second time.
   */
  readonly lostLog: 'refuse' | 'leave out' | 'rebuild';
  /** Set to read a part of the log: where it begins, and the accounts whose rows are searched for some without events. */
  readonly part?: { readonly after: Position; readonly accountIds: Iterable<number> | AsyncIterable<number> };
  readonly settleMs?: number | undefined;
  readonly rest?: Rest | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (events: number) => void;
  readonly onNotOwed?: (transactionId: number, key: string, reason: string) => void;
}

export interface Verified {
  /** Damaged events. Nothing that depends on them is judged. */
  readonly damage: readonly Damage[];
  readonly view: (ViewAgreement & { readonly remaining: readonly ViewDifference[] }) | undefined;
  readonly deliveries: (DeliveryAgreement & { readonly stored: number; readonly sent: number }) | undefined;
  readonly isLogLost: boolean;
}

/**
 * Compares the view and the deliveries with what the events call for, and repairs them if asked to. It can be interrupted
 * at any time and repeated. It keeps a bit for each transaction, and what differs.
 */
export async function verify(options: VerifyOptions): Promise<Verified> {
  const { store, view, queue, sides, scope, part, repair } = options;
  const log = await findLog(options);
  const ofView = sides.includes('view')
    ? new ViewSide({ store, ...scope, view: view(), pagesOf: part?.accountIds })
    : undefined;
  const ofDeliveries =
    log.startedAtMs === undefined
      ? undefined
      : new DeliverySide({ ...options, ...scope, queue: queue(), logStartedAtMs: log.startedAtMs });
  const compared = [ofView, ofDeliveries].filter((side) => side !== undefined);
  const damage = await compareLog(compared, { ...options, ...scope, after: part?.after });
  const rows = ofView?.agreement;
  const remaining =
    rows && repair ? await repairView(rows.differences, { ...options, view: view() }) : rows?.differences;
  const deliveries = ofDeliveries?.agreement;
  const repaired =
    deliveries && repair && (deliveries.missing.length > 0 || log.isLost)
      ? await repairDeliveries(deliveries.missing, { newLog: log.isLost }, { ...options, queue: queue() })
      : { stored: 0, sent: 0 };
  return {
    damage,
    view: rows && { ...rows, remaining: remaining ?? [] },
    deliveries: deliveries && { ...deliveries, ...repaired },
    isLogLost: log.isLost,
  };
}

/** Finds out since when the delivery log is complete; `undefined` if the deliveries are not judged. */
async function findLog({ store, queue, sides, lostLog, scope }: VerifyOptions) {
  const nothing = { isLost: false, startedAtMs: undefined };
  if (!sides.includes('deliveries')) return nothing;
  const { deliveryLog: started } = await operationsOf(store);
  if (started === undefined && lostLog === 'leave out') return nothing;
  const log = await queue().logId();
  if (started === undefined || started.id === log.id) return { isLost: false, startedAtMs: log.startedAtMs };
  if (lostLog === 'refuse') {
    throw new FuelError(
      'REFUSED',
      `the delivery log ${started.id} is gone, and with it what receivers have already. Restore its backup, or ` +
        'run `fuel verify deliveries --repair --resend-unknown`, which may send them events for the second time',
    );
  }
  const { accountId, sinceMs, untilMs } = scope;
  if (lostLog === 'rebuild' && (accountId ?? sinceMs ?? untilMs) !== undefined)
    throw new FuelError(
      'REFUSED',
      'a lost delivery log can only be rebuilt as a whole. Leave out --account, --since and --until',
    );
  return { isLost: true, startedAtMs: lostLog === 'rebuild' ? started.firstStartedAtMs : undefined };
}
