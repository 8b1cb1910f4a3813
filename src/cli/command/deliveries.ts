import { loadAccount } from '../../accounts/directory/load-directory.ts';
import { withHeldReason } from '../../deliveries/describe-delivery.ts';
import type { DeliverySummary } from '../../deliveries/queue/delivery-queue.ts';
import type { Account } from '../../domain/account.ts';
import type { Session } from './command.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** The stores and settings that decide which deliveries a transaction calls for. */
export function deliveryContext({ config, engines, clock }: Session) {
  return {
    store: engines.store(),
    queue: engines.queue(),
    clock,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: config.FUEL_DELIVERY_RETENTION_DAYS * DAY_MS,
  };
}

/** The deliveries, those that are held with the reason. */
export async function withHeldReasons<T extends DeliverySummary>(
  { engines, clock }: Session,
  deliveries: readonly T[],
): Promise<T[]> {
  const held = new Map<number, Account | undefined>();
  for (const { state, accountId } of deliveries) {
    if (state !== 'held' || held.has(accountId)) continue;
    held.set(accountId, (await loadAccount(engines.store(), accountId))?.account);
  }
  return deliveries.map((delivery) => withHeldReason(delivery, (id) => held.get(id), clock.now()));
}
