import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ApiMetrics } from '../../../src/pull/api-metrics.ts';
import { ApiMeter, addApiReport } from '../../../src/service/ops/api-meter.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';

const status = fc.constantFrom(200, 400, 401);
const code = fc.constantFrom('', 'NOT_FOUND');
const reason = fc.constantFrom('peer_limit', 'total_limit');
const amount = fc.integer({ min: 0, max: 100 });
/** One thing that the API counts. */
const count: fc.Arbitrary<(metrics: ApiMetrics) => void> = fc.oneof(
  fc.record({ status, code }).map((labels) => (metrics: ApiMetrics) => metrics.requests.inc(labels)),
  fc
    .record({ check: reason, code })
    .map((labels) => (metrics: ApiMetrics) => metrics.accessRefusals.inc(labels)),
  reason.map((text) => (metrics: ApiMetrics) => metrics.connectionsTurnedAway.inc({ reason: text })),
  fc.tuple(status, amount).map(
    ([of, ms]) =>
      (metrics: ApiMetrics) =>
        metrics.requestDuration.observe({ status: of }, ms / 1_000),
  ),
  amount.map((rows) => (metrics: ApiMetrics) => metrics.pageRows.inc(rows)),
  amount.map((entries) => (metrics: ApiMetrics) => metrics.pageEntriesRead.inc(entries)),
  fc.constant((metrics: ApiMetrics) => metrics.edgeNotEnforced.inc()),
);

async function shown({ registry }: ReturnType<typeof createMetrics>): Promise<string> {
  const names = (await registry.getMetricsAsArray()).map(({ name }) => name);
  const ofApi = names.filter((name) => /^fuel_(http|access|page|edge|connections)_/.test(name));
  return (await Promise.all(ofApi.map((name) => registry.getSingleMetricAsString(name)))).join('\n');
}

test('the figures of threads, reported now and then, are those of one that counts everything itself', async () => {
  const work = fc.array(fc.tuple(count, fc.boolean(), fc.boolean()), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(work, async (counts) => {
      const [one, main] = [createMetrics(), createMetrics()];
      const threads = [new ApiMeter(), new ApiMeter()] as const;
      for (const [add, isFirst, reports] of counts) {
        const thread = threads[isFirst ? 0 : 1];
        add(one);
        add(thread);
        if (reports) addApiReport(main, structuredClone(thread.take()));
      }
      for (const thread of threads) addApiReport(main, structuredClone(thread.take()));
      expect((await shown(main)).split('\n').toSorted()).toEqual((await shown(one)).split('\n').toSorted());
    }),
    { numRuns: 20 },
  );
});
