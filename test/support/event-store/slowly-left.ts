import type { EventStore } from '../../../src/event-store/event-store.ts';
import { replacing } from '../interposed.ts';

/** Returns the store with subscriptions that take a moment to end, and are read until then. */
export function slowlyLeft(store: EventStore) {
  const state = { isRead: false };
  const left = replacing(store, {
    async *subscribe(options) {
      state.isRead = true;
      try {
        yield* store.subscribe(options);
      } finally {
        await new Promise((resolve) => setTimeout(resolve, 50));
        state.isRead = false;
      }
    },
  });
  return { store: left, state };
}
