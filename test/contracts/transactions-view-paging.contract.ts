import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { VisibleStatus } from '../../src/domain/transaction-events.ts';
import type { ListQuery } from '../../src/pull/parameters.ts';
import type { PageQuery, TransactionsView } from '../../src/pull/view/transactions-view.ts';
import type { ViewChange } from '../../src/records/project-event.ts';
import { type OpenedView, openedView } from '../support/transactions/opened-view.ts';
import { hiding, type SampleRow, showing } from '../support/transactions/records.ts';

/** Compares pages of random records, filters, sizes, arrivals and voids with a naive list. */
export function transactionsViewPagingContract(open: () => Promise<TransactionsView>): void {
  test('pages with any filters, sizes, arrivals and voids between them equal a naive list', async () => {
    const opened = await openedView(open);
    let run = 0;
    const property = fc.asyncProperty(
      fc.array(sample, { maxLength: 40 }),
      query,
      fc.array(step),
      (samples, filter, steps) => agreesWithModel({ ...opened, run: run++ }, { samples, filter, steps }),
    );
    await fc.assert(property, { numRuns: 60 });
    await opened.view.close();
  });

  test('pages of many corporates reach those whose records are older than a long run of others, with ties', async () => {
    const opened = await openedView(open);
    const samples = Array.from({ length: 60 }, (_, n): SampleRow => {
      const isAsked = n < 9 || n % 13 === 0;
      return {
        id: n,
        accountId: 7,
        status: n % 3 === 0 ? 'EXTERNAL' : 'CONFIRMED',
        corporateGroupId: null,
        createdAtMs: 1 + Math.floor(n / 4),
        corporateId: isAsked ? 1 + (n % 20) : 200,
      };
    });
    const corporates = Array.from({ length: 120 }, (_, n) => n + 1);
    for (const limit of [1, 2, 5]) {
      const filter: Filter = {
        fromMs: 1,
        toMs: 14,
        statuses: ['CONFIRMED', 'EXTERNAL'],
        limit,
        references: { corporate_id: corporates, corporate_group_id: undefined },
      };
      await agreesWithModel({ ...opened, run: limit }, { samples, filter, steps: [] });
    }
    await opened.view.close();
  });
}

interface Scenario {
  readonly samples: readonly SampleRow[];
  readonly filter: Filter;
  readonly steps: readonly Step[];
}

/** Compares one run. It has its own accounts and transactions, among those of earlier runs. */
async function agreesWithModel(
  { view, apply, run }: OpenedView & { readonly run: number },
  { samples, filter, steps }: Scenario,
): Promise<void> {
  const idOf = (id: number): number => run * 1_000 + id;
  const accountOf = (id: number): number => run * 10 + id;
  const accountId = accountOf(7);
  const model = new Map<number, ModelRow | 'hidden'>();
  const arrive = async (...rows: readonly SampleRow[]): Promise<void> => {
    const arrived: ViewChange[] = [];
    for (const row of rows) {
      const own = { ...row, id: idOf(row.id), accountId: accountOf(row.accountId ?? 7) } as ModelRow;
      if (model.has(own.id)) continue;
      model.set(own.id, own);
      arrived.push(showing(own));
    }
    await apply(...arrived);
  };
  await arrive(...samples);
  let after: { createdAtMs: number; id: number } | undefined;
  for (const next of [...steps, ...Array<Step>(20).fill({ kind: 'none' })]) {
    const page = await view.page({ ...filter, accountId, after });
    const expected = naivePage([...model.values()], { accountId, filter, after });
    expect({ ids: page.rows.map((row) => row.id), more: page.hasMore }).toEqual(expected);
    const last = page.rows.at(-1);
    if (last === undefined) break;
    after = { createdAtMs: last.createdAtMs, id: last.id };
    if (next.kind === 'arrive') await arrive(next.row);
    const known = next.kind === 'hide' ? model.get(idOf(next.id)) : undefined;
    if (known !== undefined && known !== 'hidden') {
      model.set(known.id, 'hidden');
      await apply(hiding(known.id, { accountId: known.accountId }));
    }
  }
}

type ModelRow = Required<Omit<SampleRow, 'fees'>>;
type Filter = Omit<ListQuery, 'after'>;
type Step = { kind: 'none' } | { kind: 'arrive'; row: SampleRow } | { kind: 'hide'; id: number };

/** More corporates than any engine merges at once: 32 runs on SQLite, 200 on MongoDB. */
const MANY = 250;
const many = fc.shuffledSubarray(
  Array.from({ length: MANY }, (_, n) => n + 1),
  { minLength: 80 },
);

const small = (max: number) => fc.integer({ min: 1, max });
const status = fc.constantFrom<VisibleStatus>('CONFIRMED', 'EXTERNAL');
const sample: fc.Arbitrary<SampleRow> = fc.record({
  id: small(60),
  accountId: fc.constantFrom(7, 7, 7, 8),
  status,
  createdAtMs: small(8),
  corporateId: fc.oneof(small(3), small(MANY)),
  corporateGroupId: fc.constantFrom(null, 1, 2),
});
const query: fc.Arbitrary<Filter> = fc.record({
  fromMs: small(4),
  toMs: fc.integer({ min: 4, max: 9 }),
  references: fc.record({
    corporate_group_id: fc.constantFrom(undefined, 1, 2),
    corporate_id: fc.oneof(fc.constant(undefined), fc.uniqueArray(small(4), { minLength: 1 }), many),
  }),
  statuses: fc.uniqueArray(status, { minLength: 1 }),
  limit: small(6),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('arrive' as const), row: sample }),
  fc.record({ kind: fc.constant('hide' as const), id: small(60) }),
);

/** Returns the page by the plain rules, slowly: filters all, sorts all, cuts. */
function naivePage(
  rows: readonly (ModelRow | 'hidden')[],
  { accountId, filter, after }: { accountId: number; filter: Filter; after: PageQuery['after'] },
): { ids: number[]; more: boolean } {
  const found = rows
    .filter((row) => row !== 'hidden')
    .filter(
      (row) =>
        row.accountId === accountId && row.createdAtMs >= filter.fromMs && row.createdAtMs <= filter.toMs,
    )
    .filter((row) => filter.statuses.includes(row.status))
    .filter((row) => [undefined, row.corporateGroupId].includes(filter.references.corporate_group_id))
    .filter((row) => filter.references.corporate_id?.includes(row.corporateId) ?? true)
    .sort((a, b) => b.createdAtMs - a.createdAtMs || b.id - a.id)
    .filter((row) => {
      if (after === undefined) return true;
      return (
        row.createdAtMs < after.createdAtMs || (row.createdAtMs === after.createdAtMs && row.id < after.id)
      );
    });
  return { ids: found.slice(0, filter.limit).map((row) => row.id), more: found.length > filter.limit };
}
