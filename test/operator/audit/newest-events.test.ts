import { expect, test } from 'vitest';
import { recordOperations } from '../../../src/event-store/operations.ts';
import { newestOperations } from '../../../src/operator/audit/newest-events.ts';
import { MemoryLog, openMemoryEventStore } from '../../support/engines/memory-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('of all operations the newest 50 are kept, and the newest of each type however old it is', async () => {
  const clock = new FakeClock();
  const store = openMemoryEventStore(new MemoryLog(), clock);
  const by = { author: { actor: 'system', command: 'night' }, clock };
  const proven = (size: number) => ({ type: 'LogProven', data: { size, root: '' } }) as const;
  const backup = { type: 'BackupMade', data: { events_up_to: 1 } } as const;
  await recordOperations(store, [proven(1), proven(2)], by);
  for (let round = 0; round < 3; round += 1) {
    await recordOperations(store, new Array(30).fill(backup), by);
    const kept = await newestOperations(store);
    expect(kept.find(({ type }) => type === 'LogProven')?.data).toMatchObject({ size: 2 });
  }
  const kept = await newestOperations(store);
  expect(kept.map(({ revision }) => revision)).toEqual([...Array(50).keys()].map((at) => 91 - at).concat(1));
});
