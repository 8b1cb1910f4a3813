import type { DomainEvent } from '../../../src/domain/events.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { RedeliverOptions } from '../../../src/operator/deliveries/redeliver.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { claimOptions, delivered, failed, newDelivery } from '../../support/deliveries/deliveries.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { confirmed } from '../../support/transactions/e2e-samples.ts';

/** Account 7 with a webhook and an empty delivery log, and what redeliveries of it need. */
export async function startRedelivering() {
  const stores = openPushStores();
  const { store, clock, author, append } = stores;
  const queue = stores.openQueue();
  await stores.account(opened(), keyIssued(), webhookSet());
  const refused: [string, string][] = [];
  const stopping = new AbortController();
  const options: RedeliverOptions = {
    writer: { store, clock, author },
    queue,
    onRefused: (id, reason) => refused.push([id, reason]),
    onProgress: () => undefined,
    signal: stopping.signal,
  };
  /** Stores a delivery `d<transaction>` that ended so. */
  async function ended(
    transactionId: number,
    kind: 'delivered' | 'failed',
    prefix = PREFIX,
  ): Promise<string> {
    const id = `d${transactionId}`;
    await append(`transaction-${transactionId}`, confirmed(transactionId));
    const nowMs = clock.now();
    const made = newDelivery(transactionId, { id, prefix, createdAtMs: nowMs });
    const [claimed] = await queue.enqueue([made], claimOptions(nowMs));
    if (claimed === undefined) throw new Error('nothing was claimed');
    await queue.report([kind === 'failed' ? failed(claimed, nowMs) : delivered(claimed, nowMs)]);
    return id;
  }
  /** Stores so many deliveries that ended as failed. */
  async function failedTogether(count: number): Promise<void> {
    const transactions = Array.from({ length: count }, (_, index) => index + 1);
    await store.append(
      transactions.map((id) => ({
        stream: `transaction-${id}`,
        expected: 'none',
        events: [newEvent(confirmed(id) as unknown as DomainEvent, author, clock.now())],
      })),
    );
    await queue.enqueue(transactions.map((id) => newDelivery(id, { prefix: PREFIX })));
    await queue.change({ kind: 'end lane', prefix: PREFIX, reason: 'the webhook was disabled' }, clock.now());
  }
  return { ...stores, queue, options, refused, stopping, ended, failedTogether };
}
