import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { EventMetadata } from '../../../../src/domain/events.ts';
import { firstPosition, rewrittenMetadata } from '../../../../src/event-store/codec.ts';
import { eventStoreDbOnDouble } from '../../../support/event-store/eventstoredb-under-test.ts';
import { nameOf, record } from '../../../support/event-store/store-events.ts';

test('a rewrite that ended before it truncated the stream is completed by the same one: each event is there once', async () => {
  const store = await eventStoreDbOnDouble();
  onTestFinished(() => store.close());
  await record(store, 'transaction-1', 'a', 'b');
  const before = await store.readStream('transaction-1');
  const copies = before.map((event) => ({
    id: randomUUID(),
    type: event.type,
    data: { name: 'x' },
    metadata: rewrittenMetadata(event) as unknown as EventMetadata,
  }));
  await store.append([{ stream: 'transaction-1', expected: 1, events: copies }]);
  await record(store, 'transaction-1', 'c');
  expect(await store.rewrite(await store.readStream('transaction-1'))).toBe(true);
  const after = await store.readStream('transaction-1');
  expect(after.map(nameOf)).toEqual(['x', 'x', 'c']);
  expect(after.slice(0, 2).map(firstPosition)).toEqual(before.map(({ position }) => position));
});
