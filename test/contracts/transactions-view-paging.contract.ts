import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { VisibleStatus } from '../../projections/transactions.ts';
import type { PageQuery, TransactionsView } from '../../src/transactions-view/transactions-view.ts';
import { openedView } from '../support/opened-view.ts';
import { hiding, type SampleRow, showing } from '../support/records.ts';

/** Pages of random records, filters, sizes, arrivals and voids against the list as its rules read. */
export function transactionsViewPagingContract(open: () => Promise<TransactionsView>): void {
  test('pages with any filters, sizes, arrivals and voids between them equal a naive list', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(sample, { maxLength: 40 }), query, fc.array(step), agreesWithModel),
      {
        numRuns: 60,
      },
    );
  });

  async function agreesWithModel(samples: SampleRow[], filter: Filter, steps: Step[]): Promise<void> {
    const { view, apply } = await openedView(open);
    const model = new Map<number, ModelRow | 'hidden'>();
    const arrive = async (row: SampleRow): Promise<void> => {
      if (model.has(row.id)) return;
      model.set(row.id, row as ModelRow);
      await apply(showing(row));
    };
    for (const row of samples) await arrive(row);
    let after: { createdAtMs: number; id: number } | undefined;
    for (const next of [...steps, ...Array<Step>(20).fill({ kind: 'none' })]) {
      const page = await view.page({ ...filter, accountId: 7, after });
      const expected = naivePage([...model.values()], filter, after);
      expect({ ids: page.rows.map((row) => row.id), more: page.hasMore }).toEqual(expected);
      const last = page.rows.at(-1);
      if (last === undefined) break;
      after = { createdAtMs: last.createdAtMs, id: last.id };
      if (next.kind === 'arrive') await arrive(next.row);
      const known = next.kind === 'hide' ? model.get(next.id) : undefined;
      if (next.kind === 'hide' && known !== undefined && known !== 'hidden') {
        model.set(next.id, 'hidden');
        await apply(hiding(next.id, { accountId: known.accountId }));
      }
    }
    await view.close();
  }
}

type ModelRow = Required<Omit<SampleRow, 'fees'>>;
type Filter = Omit<PageQuery, 'accountId' | 'after'>;
type Step = { kind: 'none' } | { kind: 'arrive'; row: SampleRow } | { kind: 'hide'; id: number };

const small = (max: number) => fc.integer({ min: 1, max });
const status = fc.constantFrom<VisibleStatus>('CONFIRMED', 'EXTERNAL');
const sample: fc.Arbitrary<SampleRow> = fc.record({
  id: small(60),
  accountId: fc.constantFrom(7, 7, 7, 8),
  status,
  createdAtMs: small(8),
  corporateId: small(3),
  corporateGroupId: fc.constantFrom(null, 1, 2),
});
const query: fc.Arbitrary<Filter> = fc.record({
  fromMs: small(4),
  toMs: fc.integer({ min: 4, max: 9 }),
  corporateGroupId: fc.constantFrom(undefined, 1, 2),
  corporateIds: fc.option(fc.uniqueArray(small(4), { minLength: 1 }), { nil: undefined }),
  statuses: fc.uniqueArray(status, { minLength: 1 }),
  limit: small(6),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('arrive' as const), row: sample }),
  fc.record({ kind: fc.constant('hide' as const), id: small(60) }),
);

/** The list as its rules read, slowly: filter all, sort all, cut. */
function naivePage(
  rows: readonly (ModelRow | 'hidden')[],
  filter: Filter,
  after: { createdAtMs: number; id: number } | undefined,
): { ids: number[]; more: boolean } {
  const found = rows
    .filter((row) => row !== 'hidden')
    .filter(
      (row) => row.accountId === 7 && row.createdAtMs >= filter.fromMs && row.createdAtMs <= filter.toMs,
    )
    .filter((row) => filter.statuses.includes(row.status))
    .filter(
      (row) => filter.corporateGroupId === undefined || row.corporateGroupId === filter.corporateGroupId,
    )
    .filter((row) => filter.corporateIds?.includes(row.corporateId) ?? true)
    .sort((a, b) => b.createdAtMs - a.createdAtMs || b.id - a.id)
    .filter((row) => {
      if (after === undefined) return true;
      return (
        row.createdAtMs < after.createdAtMs || (row.createdAtMs === after.createdAtMs && row.id < after.id)
      );
    });
  return { ids: found.slice(0, filter.limit).map((row) => row.id), more: found.length > filter.limit };
}
