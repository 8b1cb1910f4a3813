import { namesDriver } from '../../../projections/record.ts';
import { occurredAt } from '../../event-store/codec.ts';
import type { ViewReads } from '../../pull/view/transactions-view.ts';
import type { DeliveryReads } from '../../push/queue/delivery-queue.ts';
import type { DriverTransaction } from '../drivers/find-driver.ts';

/** A transaction in which a driver was found, and where else the driver's name is because of it. */
export async function driverAnswer(
  { id, accountId, named }: DriverTransaction,
  { view, queue }: { readonly view: Pick<ViewReads, 'find'>; readonly queue: Pick<DeliveryReads, 'page'> },
) {
  const [first] = named;
  const [row, { deliveries }] = await Promise.all([
    view.find([id]).then((found) => found.get(id)?.shown),
    queue.page({ transactionIds: [id] }, { limit: Infinity }),
  ]);
  return {
    id,
    account: accountId,
    at: first === undefined ? null : occurredAt(first),
    driver: first?.data.driver.id ?? null,
    name: first?.data.driver.name ?? null,
    mobile_number: first?.data.driver.mobile_number ?? null,
    /** True if customers see the name. */
    shown: row != null && namesDriver(row.record),
    deliveries: deliveries.length,
  };
}
