import type { Damage } from './event-store.ts';

/** What cures damage: nothing that depends on a damaged event is changed before. */
export const RESTORE_EVENTS =
  'stop every process, keep the file, and restore events.db from a backup: docs/operations/troubleshooting.md, "A file is damaged"';

export function describeDamage({ position, event, reason }: Damage): string {
  if (event === undefined) return `the event store is damaged: ${reason}`;
  return `event ${event.revision} of ${event.stream} (position ${position}) can not be read: ${reason}`;
}

/** The streams that can't be judged by their events: all where it can't be made out which event is damaged. */
export class DamagedStreams {
  readonly #streams: ReadonlySet<string>;
  readonly #mayBeAny: boolean;

  constructor(damage: readonly Damage[] = []) {
    this.#streams = new Set(damage.map(({ event }) => event?.stream ?? ''));
    this.#mayBeAny = damage.some(({ event }) => event === undefined);
  }

  has(stream: string): boolean {
    return this.#mayBeAny || this.#streams.has(stream);
  }
}
