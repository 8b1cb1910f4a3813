import { assertBinding } from '../../accounts/store-binding.ts';
import type { Config } from '../../config/config.ts';
import type { Coordination } from '../../coordination/coordination.ts';
import { readStartedLog } from '../../deliveries/delivery-log.ts';
import type { DeliveryQueue } from '../../deliveries/queue/delivery-queue.ts';
import { FuelError } from '../../errors.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { assertViewFits } from '../../event-store/store-identity.ts';
import { assertNoUnfinishedCopy } from '../../store-copy/unfinished-copy.ts';
import { VIEW_NAME } from '../../transactions/view/projector.ts';
import type { TransactionsView } from '../../transactions/view/transactions-view.ts';
import { type Finding, right, wrong } from './check.ts';

/** What exists of the stores. */
export interface StoreParts {
  readonly store: EventStore;
  readonly view: Pick<TransactionsView, 'checkpoint'> | undefined;
  readonly queue: Pick<DeliveryQueue, 'logId'> | undefined;
  readonly coordination: Coordination | undefined;
}

/** Whether the stores belong to each other and to this configuration, as a start would check it. */
export async function checkStore(
  { store, view, queue, coordination }: StoreParts,
  config: Pick<Config, 'FUEL_ENVIRONMENT' | 'FUEL_MASTER_KEY' | 'FUEL_DATA_DIR'>,
): Promise<Finding> {
  if ((await store.head()) === 0) return right('the event store is empty: nothing was recorded yet');
  try {
    if (coordination !== undefined) await assertNoUnfinishedCopy(coordination);
    await assertBinding(store, config);
    await assertViewFits(await view?.checkpoint(), store, VIEW_NAME);
    const started = await readStartedLog(store);
    if (started !== undefined && queue !== undefined && (await queue.logId()).id !== started.id) {
      return wrong(
        'the delivery log is not the one of this event store',
        'restore its backup; where it is lost: fuel verify deliveries --repair --resend-unknown',
      );
    }
  } catch (error) {
    if (!(error instanceof FuelError) || !['STORE_MISMATCH', 'REFUSED'].includes(error.code)) throw error;
    return wrong(error.message, 'follow what the message says; nothing is lost meanwhile');
  }
  return right(`the stores belong to each other and to ${config.FUEL_ENVIRONMENT}`);
}
