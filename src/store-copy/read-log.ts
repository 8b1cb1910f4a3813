import type { EventStore, Position, SubscriptionBatch } from '../event-store/event-store.ts';

const BATCH_SIZE = 1_000;

/** The log behind `after`, up to `upTo` or a little further, and no wait for what is not there yet. */
export async function* readLog(
  store: EventStore,
  { after, upTo }: { readonly after: Position; readonly upTo: Position },
): AsyncGenerator<SubscriptionBatch, void> {
  if (after >= upTo) return;
  const { signal } = new AbortController();
  for await (const batch of store.subscribe({ prefixes: [], after, signal, batchSize: BATCH_SIZE })) {
    yield batch;
    if (batch.position >= upTo) return;
  }
}
