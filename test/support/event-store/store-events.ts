import type { EventStore, NewEvent, SubscriptionBatch } from '../../../src/event-store/event-store.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import type { Position } from '../../../src/event-store/recorded-event.ts';

const AUTHOR = { actor: 'test', command: 'test' };

/** An event with this name in its data. */
export function named(name: string): NewEvent {
  return newEvent({ type: 'AccountOpened', data: { account_id: 1, name } }, AUTHOR, 0);
}

/** Appends one event for each name, at any revision. Returns the position of the last one. */
export async function record(store: EventStore, stream: string, ...names: string[]): Promise<Position> {
  const [result] = await store.append([{ stream, expected: 'any', events: names.map(named) }]);
  if (result?.kind !== 'appended') throw new Error(`not appended: ${JSON.stringify(result)}`);
  return result.position;
}

export function nameOf(event: { readonly data: unknown }): string {
  return (event.data as { name: string }).name;
}

/** Reads until `enough` returns true. */
export async function collect(
  batches: AsyncIterator<SubscriptionBatch>,
  enough: (names: readonly string[], last: SubscriptionBatch) => boolean,
): Promise<{ names: string[]; position: Position; batches: SubscriptionBatch[] }> {
  const names: string[] = [];
  const read: SubscriptionBatch[] = [];
  for (;;) {
    const { value, done } = await batches.next();
    if (done === true) throw new Error(`the subscription ended after ${names.join(', ')}`);
    names.push(...value.events.map(nameOf));
    read.push(value);
    if (enough(names, value)) return { names, position: value.position, batches: read };
  }
}
