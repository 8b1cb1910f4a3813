import type { EventStore } from '../../../src/event-store/event-store.ts';

/** The store with these methods replaced. */
export function storeWith(store: EventStore, methods: Partial<EventStore>): EventStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Returns the store with subscriptions that take a moment to end, and are read until then. */
export function slowlyLeft(store: EventStore) {
  const state = { isRead: true };
  const left = storeWith(store, {
    async *subscribe(options) {
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
