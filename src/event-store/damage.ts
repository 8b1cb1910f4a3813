import type { Damage } from './event-store.ts';
import { isDamaged, type RecordedEvent, Unreadable } from './recorded-event.ts';

/** How an operator repairs damage. Until then nothing that depends on a damaged event is changed. */
export const RESTORE_EVENTS =
  'stop every process, keep the file, and restore events.db from a backup: docs/operations/troubleshooting.md, "A file is damaged"';

export function describeDamage({ position, event, reason }: Damage): string {
  if (event === undefined) return `the event store is damaged: ${reason}`;
  return `event ${event.revision} of ${event.stream} (position ${position}) cannot be read: ${reason}`;
}

/** Returns the damage of an event that can't be read; `undefined` if it can. */
export function damageOf(event: RecordedEvent): Damage | undefined {
  const { position, stream, revision, data, metadata } = event;
  const unreadable =
    data instanceof Unreadable ? data : metadata instanceof Unreadable ? metadata : undefined;
  if (unreadable === undefined) return undefined;
  const place = stream === '' ? undefined : { stream, revision };
  return { position, event: place, reason: unreadable.reason, isCertain: isDamaged(event) };
}

/** The streams that can't be judged by their events. If it is unknown which event is damaged, these are all streams. */
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
