import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { FuelError } from '../errors.ts';
import type { EventStore, RecordedEvent } from '../event-store/event-store.ts';
import { differenceBetween, placeOf, toCopied } from './copied-event.ts';
import { readLog } from './read-log.ts';

const SYSTEM_STREAMS = '$';

/**
 * Gives an empty target the event that names the source, before any other: from then on it is known whose copy
 * it is. Throws `REFUSED`, with nothing changed, where the target is another store or holds events without a
 * name.
 */
export async function nameTarget(first: RecordedEvent, target: EventStore): Promise<void> {
  const [named] = await target.readStream(OPERATIONS_STREAM);
  if (named !== undefined) {
    if (differenceBetween(first, named) === undefined) return;
    throw new FuelError(
      'REFUSED',
      `the target is event store ${storeIdOf(named)} and this one is ${storeIdOf(first)}: use an empty one`,
    );
  }
  const other = await anyEvent(target);
  if (other !== undefined) {
    throw new FuelError(
      'REFUSED',
      `the target holds events and no name (the first is ${placeOf(other)}): use an empty one`,
    );
  }
  const append = { stream: OPERATIONS_STREAM, expected: 'none', events: [toCopied(first)] } as const;
  const [result] = await target.append([append]);
  if (result?.kind === 'appended') return;
  throw new FuelError('REFUSED', 'another process named the target at the same moment: run the copy again');
}

async function anyEvent(store: EventStore): Promise<RecordedEvent | undefined> {
  for await (const { events } of readLog(store, { after: 0, upTo: await store.head() })) {
    const found = events.find(({ stream }) => !stream.startsWith(SYSTEM_STREAMS));
    if (found !== undefined) return found;
  }
  return undefined;
}

function storeIdOf({ data }: RecordedEvent): string {
  const members = typeof data === 'object' && data !== null ? data : {};
  return 'store_id' in members ? String(members.store_id) : 'without a name';
}
