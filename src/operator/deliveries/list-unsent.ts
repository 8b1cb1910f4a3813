import { transactionStream, VISIBLE_STATUSES } from '../../domain/transaction-events.ts';
import type { PageRow, Place, ViewReads } from '../../pull/view/transactions-view.ts';
import type { DeliveryReads } from '../../push/queue/delivery-queue.ts';
import { type TransactionDeliveriesOptions, transactionDeliveries } from './transaction-deliveries.ts';

const PAGE = 500;

export interface UnsentOptions extends TransactionDeliveriesOptions {
  readonly view: Pick<ViewReads, 'page'>;
  readonly queue: Pick<DeliveryReads, 'page'>;
}

/** Yields the transactions that customers see but that the key has no delivery of, with the reason, newest first. */
export async function* listUnsent(
  {
    accountId,
    prefix,
    fromMs,
    toMs,
  }: { readonly accountId: number; readonly prefix: string; readonly fromMs: number; readonly toMs: number },
  options: UnsentOptions,
): AsyncGenerator<{ readonly row: PageRow; readonly reason: string }, void> {
  const { view, queue, store } = options;
  const query = { accountId, fromMs, toMs, statuses: VISIBLE_STATUSES, limit: PAGE };
  for (let after: Place | undefined; ; ) {
    const { rows, hasMore } = await view.page({ ...query, after });
    const transactionIds = rows.map(({ id }) => id);
    const { deliveries } = await queue.page({ transactionIds }, { limit: Infinity });
    const sent = new Set(deliveries.flatMap((each) => (each.prefix === prefix ? each.transactionId : [])));
    for (const row of rows) {
      if (sent.has(row.id)) continue;
      const events = await store.readStream(transactionStream(row.id));
      const { notSent } = await transactionDeliveries(row.id, events, options);
      yield { row, reason: notSent.find(({ key }) => key === prefix)?.reason ?? 'the reason is unknown' };
    }
    after = rows.at(-1);
    if (!hasMore) return;
  }
}
