import { expect, test } from 'vitest';
import { recordOperations } from '../../../src/event-store/operations.ts';
import { checkProof } from '../../../src/operator/checks/proof.ts';
import { MemoryLog, openMemoryEventStore } from '../../support/engines/memory-log.ts';
import { record } from '../../support/event-store/store-events.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { seal } from '../../support/seals/sealing.ts';

const DAY_MS = 86_400_000;

test('a proof that is two days old is wrong where more was sealed since, and says what was sealed and proven', async () => {
  const clock = new FakeClock();
  const store = openMemoryEventStore(new MemoryLog(), clock);
  const look = () => checkProof(store, clock.now());
  expect(await look()).toMatchObject({ ok: true, detail: expect.stringContaining('nothing is sealed') });
  await record(store, 'account-1', 'a', 'b');
  await seal(store);
  expect(await look()).toMatchObject({ ok: true, detail: expect.stringContaining('nothing was proven') });
  const proven = { type: 'LogProven', data: { size: 2, root: '' } } as const;
  await recordOperations(store, [proven], { author: { actor: 'system', command: 'night' }, clock });
  clock.advance(3 * DAY_MS);
  expect(await look()).toMatchObject({
    ok: true,
    detail: expect.stringContaining('the first 2 were proven'),
  });
  await record(store, 'account-1', 'c');
  await seal(store);
  expect(await look()).toMatchObject({ ok: false, do: expect.stringContaining('fuel audit verify') });
});
