import type { EventStore, SubscribeOptions, SubscriptionBatch } from './event-store.ts';

/**
 * What matches after `after`, to the end of the log. Rejects with `STORE_UNAVAILABLE` where the engine is unavailable
 * at the beginning, instead of waiting for it as a subscription does.
 */
export async function* readToEnd(
  store: Pick<EventStore, 'head' | 'subscribe'>,
  {
    signal = new AbortController().signal,
    ...options
  }: Omit<SubscribeOptions, 'signal'> & { readonly signal?: AbortSignal },
): AsyncGenerator<SubscriptionBatch, void> {
  await store.head();
  for await (const batch of store.subscribe({ ...options, signal })) {
    yield batch;
    if (batch.caughtUp) return;
  }
}
