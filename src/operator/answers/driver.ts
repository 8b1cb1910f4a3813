import { namesDriver } from '../../../projections/record.ts';
import { recordedAt } from '../../event-store/codec.ts';
import type { ViewReads } from '../../pull/view/transactions-view.ts';
import type { DeliveryReads } from '../../push/queue/delivery-reads.ts';
import type { DriverTransaction } from '../drivers/find-driver.ts';
import { type Column, link, time } from './columns.ts';

/** A transaction that a driver was found in, and where else the driver's name stands because of it. */
export async function driverAnswer(
  { id, accountId, named }: DriverTransaction,
  {
    view,
    queue,
  }: { readonly view: Pick<ViewReads, 'find'>; readonly queue: Pick<DeliveryReads, 'ofTransactions'> },
) {
  const [first] = named;
  const [row, deliveries] = await Promise.all([
    view.find([id]).then((found) => found.get(id)?.shown),
    queue.ofTransactions([id]),
  ]);
  return {
    id,
    account: accountId,
    at: first === undefined ? null : recordedAt(first),
    driver: first?.data.driver.id ?? null,
    name: first?.data.driver.name ?? null,
    mobile_number: first?.data.driver.mobile_number ?? null,
    /** Whether customers are shown the name. */
    shown: row != null && namesDriver(row),
    deliveries: deliveries.length,
  };
}

type DriverAnswer = Awaited<ReturnType<typeof driverAnswer>>;

export const DRIVER_COLUMNS: readonly Column<DriverAnswer>[] = [
  { head: 'Recorded', width: 24, cell: ({ at }) => time(at) },
  { head: 'Transaction', width: 11, cell: ({ id }) => link('transaction', id) },
  { head: 'Account', width: 8, cell: ({ account }) => link('account', account) },
  { head: 'Driver', width: 8, cell: ({ driver }) => driver ?? '–' },
  { head: 'Name', width: 20, cell: ({ name }) => name ?? '–' },
  { head: 'Number', width: 14, cell: ({ mobile_number }) => mobile_number ?? '–' },
  { head: 'Shown', width: 5, cell: ({ shown }) => (shown ? 'yes' : 'no') },
  { head: 'Deliveries', width: 10, number: true, cell: ({ deliveries }) => deliveries },
];
