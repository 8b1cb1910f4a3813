import type { EventStore } from '../../../event-store/event-store.ts';

/** An event store that is checked before anything is recorded in it: `bind` rejects where it is not the configuration's. */
export function boundStore(store: EventStore, bind: () => Promise<unknown>): EventStore {
  return {
    async append(appends) {
      await bind();
      return store.append(appends);
    },
    async rewrite(events) {
      await bind();
      return store.rewrite(events);
    },
    async erase(stream) {
      await bind();
      return store.erase(stream);
    },
    readStream: (stream, options) => store.readStream(stream, options),
    readLast: (stream) => store.readLast(stream),
    readStreams: (streams) => store.readStreams(streams),
    isErased: (stream) => store.isErased(stream),
    subscribe: (options) => store.subscribe(options),
    readBackwards: (options) => store.readBackwards(options),
    head: () => store.head(),
    hasReached: (position) => store.hasReached(position),
    findDamage: (signal) => store.findDamage(signal),
    close: () => store.close(),
  };
}
