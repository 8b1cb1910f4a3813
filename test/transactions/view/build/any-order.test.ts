import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { NewEvent } from '../../../../src/event-store/event-store.ts';
import { projectEvent } from '../../../../src/transactions/project-event.ts';
import { changesOfWholeStreams } from '../../../../src/transactions/view/build/whole-streams.ts';
import { openSqliteView } from '../../../../src/transactions/view/sqlite/view.ts';
import { openPushStores } from '../../../support/deliveries/push-stores.ts';
import { confirmed, voided } from '../../../support/transactions/e2e-samples.ts';

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

test('any split of the log into segments, in any order, batches and repetition, makes the view that one pass makes', async () => {
  const drawn = fc.record({
    events: histories,
    /** Where the log is split, as parts of its length. */
    splits: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
    order: fc.array(fc.nat(), { minLength: 1, maxLength: 8 }),
    batch: fc.integer({ min: 1, max: 5 }),
    erasedId: fc.option(fc.integer({ min: 1, max: 5 })),
    erasedAt: fc.nat({ max: 8 }),
  });
  await fc.assert(
    fc.asyncProperty(drawn, async ({ events, splits, order, batch, erasedId, erasedAt }) => {
      const { store, append, folder, clock, read } = await stores();
      for (const [id, kind] of events) await append(`transaction-${id}`, eventOf(id, kind));
      const log = await read();
      const open = (name: string) => openSqliteView({ path: join(folder, name), clock });
      const erase = async (view: ReturnType<typeof open>) => {
        if (erasedId !== null) await view.erase(erasedId);
      };

      const onePass = open('one.db');
      const { generation } = await onePass.reset('store', 0);
      await onePass.apply(log.map(projectEvent), { generation, position: log.length });
      await erase(onePass);

      const other = open('other.db');
      await other.reset('store', 0);
      const build = await other.builds.start('store', log.length);
      const ends = [...new Set([...splits.map((part) => Math.ceil(part * log.length)), log.length])];
      const bounds = ends
        .filter((end) => end > 0)
        .sort((a, b) => a - b)
        .map((upTo, at, all) => ({ after: all[at - 1] ?? 0, upTo }));
      await build.plan(bounds);
      const drawnOrder = order.flatMap((n) => bounds[n % bounds.length] ?? []);
      const left = bounds.filter((bound) => !drawnOrder.includes(bound)).reverse();
      for (const [at, { after, upTo }] of [...drawnOrder, ...left].entries()) {
        if (at === erasedAt) await erase(other);
        for (let from = after; from < upTo; from += batch) {
          const position = Math.min(from + batch, upTo);
          const changes = await changesOfWholeStreams(store, log.slice(from, position));
          await build.applySegment(changes, { upTo, position, events: position - from });
        }
      }
      if (drawnOrder.length + left.length <= erasedAt) await erase(other);
      await build.finish();
      expect(await other.builds.switchTo(build)).toBe(true);

      expect(await other.rowsAfter(-1, 100)).toEqual(await onePass.rowsAfter(-1, 100));
      for (const id of [1, 2, 3, 4, 5]) expect(await other.find(id)).toEqual(await onePass.find(id));
      const parked = async (view: ReturnType<typeof open>) =>
        (await view.parked()).filter(({ stream }) => stream !== `transaction-${erasedId}`);
      expect(await parked(other)).toEqual(await parked(onePass));
      await onePass.close();
      await other.close();
    }),
    { numRuns: 60 },
  );
}, 60_000);

/** An event store in a folder of its own; positions are 1, 2, … in the order of the log. */
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
