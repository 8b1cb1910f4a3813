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
