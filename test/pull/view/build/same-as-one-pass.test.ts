import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { NewEvent } from '../../../../src/event-store/event-store.ts';
import { changesOf, erasureOf } from '../../../../src/records/project-event.ts';
import { openPushStores } from '../../../support/deliveries/push-stores.ts';
import { confirmed, voided } from '../../../support/transactions/e2e-samples.ts';
import { viewInMemory } from '../../../support/transactions/open-view.ts';
import { rowIn } from '../../../support/transactions/row-in.ts';

/** One event of a stream: legal or not, readable or not. */
type Kind = 'record' | 'other record' | 'other account' | 'void' | 'unreadable';
const kinds = fc.constantFrom<Kind>('record', 'other record', 'other account', 'void', 'unreadable');
const histories = fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), kinds), { minLength: 1, maxLength: 24 });

function eventOf(id: number, kind: Kind): Omit<NewEvent, 'id' | 'metadata'> {
  const record = confirmed(id);
  switch (kind) {
    case 'record':
      return record;
    case 'other record':
      return { ...record, data: { ...(record.data as object), odometer_reading: 7 } };
    case 'other account':
      return { ...record, data: { ...(record.data as object), account_id: 8 } };
    case 'void':
      return voided(id);
    case 'unreadable':
      return { ...record, data: { ...(record.data as object), created_at: 'yesterday' } };
  }
}

test('any batches, repeated from any point and by two processes at once, with an erasure meanwhile, make the view that one pass makes', async () => {
  const drawn = fc.record({
    events: histories,
    /** The steps: which of two processes takes it, how many events, and how many of them it had applied before. */
    steps: fc.array(fc.tuple(fc.nat(1), fc.integer({ min: 1, max: 5 }), fc.nat({ max: 6 })), {
      maxLength: 12,
    }),
    erasedId: fc.option(fc.integer({ min: 1, max: 5 })),
    erasedAt: fc.nat({ max: 8 }),
  });
  await fc.assert(
    fc.asyncProperty(drawn, async ({ events, steps, erasedId, erasedAt }) => {
      const { store, append, clock, read } = await stores();
      for (const [id, kind] of events) await append(`transaction-${id}`, eventOf(id, kind));
      const log = await read();
      const open = () => viewInMemory(clock);
      const erase = async (view: ReturnType<typeof open>) => {
        if (erasedId !== null) await view.replace(erasedId, [erasureOf(erasedId)]);
      };

      const onePass = open();
      const served = await onePass.reset('store', 0);
      const whole = { generation: served.generation, position: log.length };
      await onePass.apply(await changesOf(store, log), whole);
      await erase(onePass);

      const other = open();
      await other.reset('store', 0);
      const { generation } = await other.startBuild({ storeId: 'store', servesFrom: log.length });
      const batch = async (from: number, to: number) => {
        const applied = await changesOf(store, log.slice(from, to));
        return other.apply(applied, { generation, position: Math.min(to, log.length) });
      };
      const reached = [0, 0];
      let furthest = 0;
      for (const [at, [process, count, back]] of steps.entries()) {
        if (at === erasedAt) await erase(other);
        const from = Math.max(0, (reached[process] ?? 0) - back);
        reached[process] = Math.min(from + count, log.length);
        await batch(from, from + count);
        furthest = Math.max(furthest, ...reached);
      }
      const continued = await other.startBuild({ storeId: 'store', servesFrom: log.length });
      expect(continued).toMatchObject({ generation, position: furthest });
      await batch(continued.position, log.length);
      if (steps.length <= erasedAt) await erase(other);
      expect(await other.serveBuild(generation)).toBe(true);

      expect(await other.rowsAfter(-1, 100)).toEqual(await onePass.rowsAfter(-1, 100));
      for (const id of [1, 2, 3, 4, 5]) expect(await rowIn(other, id)).toEqual(await rowIn(onePass, id));
      const parked = async (view: ReturnType<typeof open>) =>
        (await view.parked()).filter(({ stream }) => stream !== `transaction-${erasedId}`);
      expect(await parked(other)).toEqual(await parked(onePass));
      await Promise.all([onePass.close(), other.close(), store.close()]);
    }),
    { numRuns: 60 },
  );
});

/** An event store in a separate folder. Positions are 1, 2, … in the order of the log. */
async function stores() {
  const opened = openPushStores();
  const read = async () => {
    for await (const batch of opened.store.subscribe({
      prefixes: ['transaction-'],
      after: 0,
      signal: new AbortController().signal,
    })) {
      return batch.events;
    }
    return [];
  };
  return { ...opened, read };
}
