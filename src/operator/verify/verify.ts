import type { Clock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import type { Rest } from '../../base/pause.ts';
import type { Environment } from '../../domain/account-events.ts';
import type { Damage, EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { operationsOf } from '../../event-store/operations.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { withoutParked } from '../../pull/view/parked-events.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import type { DeliveryQueue } from '../../push/queue/delivery-queue.ts';
import { readLog, type VerifyScope } from './read-log.ts';
import { repairDeliveries } from './repair-deliveries.ts';
import { repairView } from './repair-view.ts';
import { type DeliveryAgreement, deliveryJudge } from './verify-deliveries.ts';
import { type ViewAgreement, type ViewDifference, viewJudge } from './verify-view.ts';

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
   * What to do if another delivery log has replaced the one that was started: refuse; leave the deliveries out, also if none
   * was started; or rebuild it, so that receivers may get events a second time.
   */
  readonly lostLog: 'refuse' | 'leave out' | 'rebuild';
  /** Set to read a part of the log: where it begins, and the accounts whose rows are searched for some without events. */
  readonly part?: { readonly after: Position; readonly accountIds: Iterable<number> };
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
 * at any time and repeated. It keeps a bit for each transaction, and what differs. If an event is damaged, the log is read a
 * second time.
 */
export async function verify(options: VerifyOptions): Promise<Verified> {
  const { view, queue, repair } = options;
  const log = await findLog(options);
  let judged = await judge(options, log.startedAtMs, []);
  const damage = await withoutParked(judged.damage, view);
  // What depends on a damaged event must not be judged, and is only known once the log was read.
  if (damage.length > 0)
    judged = await judge({ ...options, onNotOwed: () => undefined }, log.startedAtMs, damage);
  const ofView = await judged.view?.finish();
  const remaining =
    ofView && repair
      ? await repairView(ofView.differences, { ...options, view: view() })
      : ofView?.differences;
  const ofDeliveries = await judged.deliveries?.finish();
  const repaired =
    ofDeliveries && repair && (ofDeliveries.missing.length > 0 || log.isLost)
      ? await repairDeliveries(ofDeliveries.missing, { newLog: log.isLost }, { ...options, queue: queue() })
      : { stored: 0, sent: 0 };
  return {
    damage,
    view: ofView && { ...ofView, remaining: remaining ?? [] },
    deliveries: ofDeliveries && { ...ofDeliveries, ...repaired },
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
      `the delivery log ${started.id} is gone, and with it what receivers have already: restore its backup, or ` +
        'run fuel verify deliveries --repair --resend-unknown, which may send them events for the second time',
    );
  }
  const { accountId, sinceMs, untilMs } = scope;
  if (lostLog === 'rebuild' && (accountId ?? sinceMs ?? untilMs) !== undefined)
    throw new FuelError('REFUSED', 'a lost delivery log is rebuilt as a whole: leave account and times out');
  return { isLost: true, startedAtMs: lostLog === 'rebuild' ? started.firstStartedAtMs : undefined };
}

async function judge(
  { store, view, queue, sides, scope, part, ...options }: VerifyOptions,
  logStartedAtMs: number | undefined,
  damage: readonly Damage[],
) {
  const how = { store, ...scope, damage, settleMs: options.settleMs, rest: options.rest };
  const ofView = sides.includes('view')
    ? viewJudge({ ...how, view: view(), pagesOf: part?.accountIds })
    : undefined;
  const ofDeliveries =
    logStartedAtMs === undefined
      ? undefined
      : deliveryJudge({ ...options, ...how, queue: queue(), logStartedAtMs });
  const judges = [ofView, ofDeliveries].filter((each) => each !== undefined);
  const { signal, rest, onProgress } = options;
  const found = await readLog(judges, { store, after: part?.after, signal, rest, onProgress });
  return { view: ofView, deliveries: ofDeliveries, damage: found };
}
