import { type RepairOptions, repairDeliveries } from '../../../src/operator/verify/repair-deliveries.ts';
import type { OwedDeliveryId } from '../../../src/operator/verify/verify-deliveries.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import type { NewDelivery } from '../../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../../src/push/queue/delivery-queue.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../accounts/account-samples.ts';
import { newDelivery } from '../deliveries/deliveries.ts';
import { openPushStores } from '../deliveries/push-stores.ts';
import { confirmed } from '../transactions/e2e-samples.ts';
import { type VerifyDeliveriesOptions, verifyDeliveries } from './verify.ts';

export const DAY_MS = 86_400_000;
export const AFTER_URL = { created_at: '2026-09-03T08:00:00.000Z' };

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

/** An account with a webhook, whose deliveries are verified and repaired. */
export async function startVerifying() {
  const stores = openPushStores();
  const { store, clock, append, author } = stores;
  const queue = stores.openQueue();
  await stores.account(opened(), keyIssued(), webhookSet());
  const verify = (overrides: Partial<VerifyDeliveriesOptions> = {}) =>
    verifyDeliveries({
      store,
      queue,
      clock,
      environment: 'staging',
      retentionMs: 90 * DAY_MS,
      logStartedAtMs: clock.now() - 60_000,
      settleMs: 0,
      ...overrides,
    });
  const repair = (
    missing: readonly OwedDeliveryId[],
    overrides: Partial<RepairOptions> = {},
    newLog = false,
  ) =>
    repairDeliveries(
      missing,
      { newLog },
      { store, queue, clock, author, environment: 'staging', retentionMs: 90 * DAY_MS, ...overrides },
    );
  return {
    ...stores,
    queue,
    verify,
    repair,
    /** Stores the missing deliveries. Returns how many there were. */
    async repairMissing(into: DeliveryQueue = queue, newLog = false): Promise<number> {
      const { missing } = await verify({ queue: into });
      await repair(missing, { queue: into }, newLog);
      return missing.length;
    },
    confirm: (id: number, data: object = {}) =>
      append(`transaction-${id}`, confirmed(id, { ...AFTER_URL, ...data })),
    owed: (n: number, overrides: Partial<NewDelivery> = {}) =>
      newDelivery(n, { id: deliveryId(PREFIX, n), prefix: PREFIX, occurredAtMs: clock.now(), ...overrides }),
  };
}
