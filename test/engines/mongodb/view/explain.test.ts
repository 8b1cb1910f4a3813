import type { Document } from 'mongodb';
import { beforeAll, expect, test } from 'vitest';
import type { MongoConnection } from '../../../../src/engines/mongodb/driver/connection.ts';
import { pageSearches } from '../../../../src/engines/mongodb/view/page.ts';
import { openMongoView } from '../../../../src/engines/mongodb/view/view.ts';
import type { PageQuery } from '../../../../src/pull/view/transactions-view.ts';
import { describeWithMongodb, mongodb } from '../../../support/engines/mongodb.ts';
import { showing } from '../../../support/transactions/records.ts';

const ROWS = 4_000;
const CORPORATES = 1_000;
/** Half of the rows were made in this one millisecond. */
const TIES_MS = 1_000;
const LIMIT = 50;

const both = ['CONFIRMED', 'EXTERNAL'] as const;
const someCorporates = (count: number) => Array.from({ length: count }, (_, n) => n);
const queries = [undefined, 1].flatMap((corporateGroupId) =>
  [undefined, [3], [1, 2, 3], someCorporates(100), someCorporates(CORPORATES)].flatMap((corporateIds) =>
    [both, ['CONFIRMED'] as const].flatMap((statuses) =>
      [undefined, { createdAtMs: TIES_MS, id: 1_900 }, { createdAtMs: 700, id: 1 }].map((after) => ({
        ...{
          references: { corporate_group_id: corporateGroupId, corporate_id: corporateIds },
          statuses,
          after,
        },
        name: [
          ...(corporateGroupId === undefined ? [] : ['a group']),
          corporateIds === undefined ? 'all corporates' : `${corporateIds.length} corporates`,
          statuses.join(' and '),
          after === undefined
            ? 'the first page'
            : after.id > 1
              ? 'behind one of many ties'
              : 'behind a cursor',
        ].join(', '),
      })),
    ),
  ),
);

describeWithMongodb('finding a page in MongoDB', () => {
  let connection: MongoConnection;
  let rows = '';

  beforeAll(async () => {
    connection = mongodb();
    const view = openMongoView({ connection, clock: { now: () => 0 } });
    const { generation } = await view.reset('store-1', 0);
    const changes = Array.from({ length: ROWS }, (_, n) =>
      showing({
        id: n + 1,
        createdAtMs: n % 2 === 0 ? TIES_MS : n,
        corporateId: n % CORPORATES,
        corporateGroupId: n % 3 === 0 ? null : n % 3,
        status: n % 7 === 0 ? 'EXTERNAL' : 'CONFIRMED',
      }),
    );
    await view.apply(changes, { generation, position: 1 });
    rows = `transactions_${generation}`;
  });

  test.each(queries)(
    'reads one entry a run and the rows of the page, from one index, unsorted: $name',
    async ({ name: _, ...filters }) => {
      const query: PageQuery = { ...filters, accountId: 7, fromMs: 0, toMs: 10_000, limit: LIMIT };
      for (const { index, filter } of pageSearches(query)) {
        const plan: Document = await connection.use((db) =>
          db
            .collection<{ _id: number }>(rows)
            .find(filter as Document, { hint: index, limit: LIMIT + 1 })
            .sort({ place: -1 })
            .explain('executionStats'),
        );
        const { executionStages, totalKeysExamined, totalDocsExamined } = plan.executionStats;
        const stages = new Set(stagesOf(executionStages));
        expect([...stages].filter((stage) => !UNSORTED.has(stage))).toEqual([]);
        const { $in: searched = [0] } = (filter.corporate_id ?? {}) as { readonly $in?: readonly number[] };
        const runs = searched.length * query.statuses.length;
        expect(totalKeysExamined).toBeLessThanOrEqual(LIMIT + 1 + runs);
        expect(totalDocsExamined).toBeLessThanOrEqual(LIMIT + 1);
      }
    },
  );

  test('1,000 corporates with both statuses take ten queries, and any that fit into one take one', () => {
    const count = (corporates: number, statuses: PageQuery['statuses']): number =>
      pageSearches({
        ...{ accountId: 7, fromMs: 0, toMs: 1, limit: 1 },
        statuses,
        references: { corporate_id: someCorporates(corporates) },
      }).length;
    expect([count(1_000, both), count(101, both), count(100, both), count(200, ['EXTERNAL'])]).toEqual([
      10, 2, 1, 1,
    ]);
  });
});

/** What a plan may consist of: no blocking sort, and no look at rows that no index names. */
const UNSORTED = new Set(['LIMIT', 'FETCH', 'SORT_MERGE', 'IXSCAN']);

function stagesOf(stage: Document): string[] {
  const inputs: Document[] = stage.inputStages ?? (stage.inputStage === undefined ? [] : [stage.inputStage]);
  return [stage.stage, ...inputs.flatMap(stagesOf)];
}
