import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TransactionsView } from '../../src/pull/view/transactions-view.ts';
import { erasureOf, type ViewChange } from '../../src/records/project-event.ts';
import { stoppedTime } from '../support/steady-time.ts';
import { WHOLE } from '../support/transactions/opened-view.ts';
import { hiding, sampleRow, showing } from '../support/transactions/records.ts';
import { rowIn } from '../support/transactions/row-in.ts';

const REBUILDS = 4;
const SEEN_WITHIN_MS = 1_000;

/** The contract of a view that two processes use. `open` returns two openings of one empty view. */
export function transactionsViewAtOnceContract(
  open: () => Promise<readonly [TransactionsView, TransactionsView]>,
): void {
  describe('two processes at once', () => {
    test('projectors that apply the same events in any order, batches and repetition make the same view', async () => {
      const views = await open();
      const { generation } = await views[0].reset('store-1', 0);
      let run = 0;
      const property = fc.asyncProperty(
        fc.array(history, { minLength: 1, maxLength: 6 }),
        shuffles,
        (...drawn) => endAsModel(views, { generation, firstId: 100 * run++ }, drawn),
      );
      await fc.assert(property, { numRuns: 12 });
      await close(views);
    });

    test('an erasure is not undone by a void that is applied at the same moment', async () => {
      const views = await open();
      const { generation } = await views[0].reset('store-1', 0);
      const ids = Array.from({ length: 20 }, (_, n) => n + 1);
      await views[0].apply(
        ids.map((id) => showing({ id })),
        { generation, position: 1 },
      );
      for (const id of ids) {
        const [one, other] = id % 2 === 0 ? views : views.toReversed();
        await Promise.all([
          one?.replace(id, [erasureOf(id)]),
          other?.apply([hiding(id)], { generation, position: 2 }),
        ]);
      }
      const again = ids.map((id) => showing({ id }, { revision: 5 }));
      expect(await views[0].apply(again, { generation, position: 3 })).toEqual([]);
      for (const id of ids) expect(await rowIn(views[0], id)).toBe('hidden');
      await close(views);
    });

    test('of two resets one stays, and a batch for the other is refused', async () => {
      const advance = stoppedTime();
      const views = await open();
      const resets = await Promise.all(views.map((view) => view.reset('store-1', 0)));
      const stays = await views[0].checkpoint();
      expect(resets.map(({ generation }) => generation)).toContain(stays?.generation);
      expect(new Set(resets.map(({ generation }) => generation)).size).toBe(2);
      for (const { generation } of resets) {
        const applied = await views[1].apply([showing({ id: generation })], { generation, position: 1 });
        expect(applied).toEqual(generation === stays?.generation ? [] : 'reset');
      }
      advance(SEEN_WITHIN_MS);
      expect((await views[0].page(WHOLE)).rows.map((row) => row.id)).toEqual([stays?.generation]);
      await close(views);
    });

    test('within a second, a view that the other one resets is not served until it is complete again', async () => {
      const advance = stoppedTime();
      const [one, other] = await open();
      await one.reset('store-1', 0);
      expect((await other.page(WHOLE)).rows).toEqual([]);
      const { generation } = await one.reset('store-1', 2);
      await expect(one.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      advance(SEEN_WITHIN_MS);
      await expect(other.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      await one.apply([showing({ id: 1 })], { generation, position: 1 });
      await expect(other.page(WHOLE)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      await one.apply([showing({ id: 2 })], { generation, position: 2 });
      expect((await other.page(WHOLE)).rows.map((row) => row.id)).toEqual([2, 1]);
      await close([one, other]);
    });

    test('a view that the other one has rebuilt a second ago is served from its new rows', async () => {
      const advance = stoppedTime();
      const [one, other] = await open();
      const fill = async (...ids: readonly number[]): Promise<void> => {
        const { generation } = await one.reset('store-1', 1);
        await one.apply(
          ids.map((id) => showing({ id })),
          { generation, position: 1 },
        );
      };
      await fill(1);
      expect((await other.page(WHOLE)).rows.map((row) => row.id)).toEqual([1]);
      await fill(1, 2);
      advance(SEEN_WITHIN_MS);
      expect((await other.page(WHOLE)).rows.map((row) => row.id)).toEqual([2, 1]);
      await close([one, other]);
    });

    test('while one rebuilds, over and over, the other one never serves a part of the list', async () => {
      const advance = stoppedTime();
      const [one, other] = await open();
      const served = new Set<string>();
      const serve = async (): Promise<void> => {
        const page = await other.page(WHOLE).catch(unlessUnavailable);
        served.add(page?.rows.map((row) => row.id).join(' ') ?? 'unavailable');
      };
      let rebuilding = true;
      const serving = (async () => {
        while (rebuilding) await Promise.all([serve(), serve()]);
      })();
      for (let n = 0; n < REBUILDS; n++) {
        const { generation } = await one.reset('store-1', 3);
        for (const id of [1, 2, 3]) {
          advance(SEEN_WITHIN_MS / 2);
          await one.apply([showing({ id })], { generation, position: id });
        }
        await serve();
      }
      rebuilding = false;
      await serving;
      served.delete('unavailable');
      expect([...served]).toEqual(['3 2 1']);
      await close([one, other]);
    });
  });
}

/** The events of one transaction, in order. None of them is illegal, however they arrive. */
type History = readonly ('record' | 'record again' | 'void' | 'erase')[];

const history: fc.Arbitrary<History> = fc.constantFrom<History>(
  ['record'],
  ['record', 'record again'],
  ['record', 'void'],
  ['record', 'record again', 'void'],
  ['record', 'void', 'erase'],
  ['record', 'erase'],
);

/** The seed of the order and the size of the batches for each projector. */
const shuffles = fc.tuple(
  ...[1, 2].map(() =>
    fc.record({ order: fc.infiniteStream(fc.nat({ max: 1_000 })), size: fc.integer({ min: 1, max: 6 }) }),
  ),
);

async function endAsModel(
  views: readonly [TransactionsView, TransactionsView],
  { generation, firstId }: { readonly generation: number; readonly firstId: number },
  [histories, drawn]: readonly [readonly History[], readonly { order: Iterator<number>; size: number }[]],
): Promise<void> {
  const transactions = histories.map((steps, index) => ({ id: firstId + index + 1, steps }));
  const changes = transactions.flatMap(({ id, steps }) =>
    steps.map((step, revision) => changeOf(id, step, revision)),
  );
  await Promise.all(
    drawn.map(async ({ order, size }, index) => {
      const rest = [...changes, ...changes];
      const view = views[index];
      while (rest.length > 0 && view !== undefined) {
        const batch = Array.from({ length: Math.min(size, rest.length) }, () => {
          const [next] = rest.splice(Number(order.next().value) % rest.length, 1);
          return next as ViewChange;
        });
        expect(await view.apply(batch, { generation, position: 1 })).toEqual([]);
      }
    }),
  );
  for (const { id, steps } of transactions) {
    const isShown = !steps.includes('void') && !steps.includes('erase');
    expect(await rowIn(views[0], id)).toEqual(isShown ? sampleRow({ id }) : 'hidden');
  }
}

function changeOf(id: number, step: History[number], revision: number): ViewChange {
  const position = 10 * id + revision;
  if (step === 'void') return hiding(id, { revision, position });
  if (step !== 'erase') return showing({ id }, { revision, position });
  return { ...erasureOf(id), position };
}

function unlessUnavailable(error: unknown): undefined {
  if ((error as { code?: unknown }).code !== 'STORE_UNAVAILABLE') throw error;
  return undefined;
}

async function close(views: readonly TransactionsView[]): Promise<void> {
  for (const view of views) await view.close();
}
