import { OPERATIONS_STREAM } from '../../../domain/operations-events.ts';
import { membersOf, printableData, recordedAtMs } from '../../../event-store/codec.ts';
import type { EventStore } from '../../../event-store/event-store.ts';

const KEPT = 50;

export interface Operation {
  readonly atMs: number;
  readonly type: string;
  readonly actor: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The newest events of the stream `operations`: each call reads what was recorded since the last one. */
export class OperationsTail {
  readonly #store: Pick<EventStore, 'readStream'>;
  #next = 0;
  #kept: readonly Operation[] = [];

  constructor(store: Pick<EventStore, 'readStream'>) {
    this.#store = store;
  }

  /** Newest first. */
  async read(): Promise<readonly Operation[]> {
    const events = await this.#store.readStream(OPERATIONS_STREAM, { fromRevision: this.#next });
    const later = events.filter(({ revision }) => revision >= this.#next);
    this.#next = Math.max(this.#next, (later.at(-1)?.revision ?? -1) + 1);
    const added = later.map((event): Operation => {
      const { actor } = membersOf(event.metadata);
      return {
        atMs: recordedAtMs(event),
        type: event.type,
        actor: typeof actor === 'string' ? actor : null,
        data: membersOf(printableData(event)),
      };
    });
    this.#kept = [...added.reverse(), ...this.#kept].slice(0, KEPT);
    return this.#kept;
  }
}
