import { retentionMs } from '../../../base/config/config.ts';
import type { ViewReads } from '../../../pull/view/transactions-view.ts';
import type { DeliveryReads } from '../../../push/queue/delivery-queue.ts';
import type { RunningProcess } from '../../../service/service.ts';
import type { Night } from '../../verify/verify-last-days.ts';
import { AttemptHistory } from './history.ts';

/** A nightly verification that this process made. */
export interface Proof extends Night {
  readonly atMs: number;
}

/** The parts of this process and its stores that the console reads. It changes nothing. */
export type ConsoleParts = Readonly<ReturnType<typeof consoleParts>>;

export function consoleParts(running: RunningProcess, lastProof: () => Proof | undefined) {
  const { config, engines, metrics, holder } = running;
  const attempts = new AttemptHistory();
  metrics.onTaken((thread, counted) => {
    if (thread === 'webhooks') attempts.take(counted);
  });
  const [view, queue]: [ViewReads, DeliveryReads] = [engines.view(), engines.queue()];
  return {
    ...running,
    attempts,
    lastProof,
    view,
    queue,
    /** The shared figures as this process read them, oldest first. */
    readings: metrics.shared.readings,
    id: holder,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: retentionMs(config),
    store: engines.store(),
    accounts: engines.accounts(),
    subscriptions: engines.subscriptions(),
    coordination: engines.coordination(),
  };
}
