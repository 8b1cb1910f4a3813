import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import { recordedAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { operationOf } from '../../event-store/operations.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';

/** The first event of a store. Its time counts for events of a type that was never recorded. */
const BEGIN = 'StoreNamed';

/** Knows when events of some types were last recorded in the stream `operations`. Each call reads only what is new. */
export class LastTimes {
  readonly #types: readonly string[];
  readonly #seconds = new Map<string, number>();
  #next = 0;

  constructor(...types: string[]) {
    this.#types = types;
  }

  /** Returns seconds since 1970 by type; none for a store that was never used. */
  async read(store: Pick<EventStore, 'readStream'>): Promise<ReadonlyMap<string, number>> {
    for (const event of await store.readStream(OPERATIONS_STREAM, { fromRevision: this.#next })) {
      const seconds = recordedAtMs(event) / 1000;
      if (event.type === BEGIN) for (const type of this.#types) this.#seconds.set(type, seconds);
      if (this.#types.includes(event.type) && !leavesFaults(event)) this.#seconds.set(event.type, seconds);
      this.#next = event.revision + 1;
    }
    return this.#seconds;
  }
}

/** True for a verification that left differences, so that it proved nothing. */
function leavesFaults(event: RecordedEvent): boolean {
  const operation = operationOf(event);
  return operation?.type === 'AgreementVerified' && operation.data.left > 0;
}
