import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { RENDERING_VERSION } from '../../../projections/transactions.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { openEngines } from '../../../src/engines/engines.ts';
import { THREAD_ENTRY } from '../../../src/operator/serve/jobs.ts';
import { isBuilding } from '../../../src/pull/view/build/rebuild.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { workMetrics } from '../../../src/service/ops/work-metrics.ts';
import { projector } from '../../../src/service/roles/projector.ts';
import type { JobContext } from '../../../src/service/threads/job.ts';
import { memoryLog } from '../../support/service/api.ts';
import { Operator } from '../../support/service/operator.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { linesOf, minutely } from '../../support/transactions/e2e-samples.ts';
import { alterServedIn } from '../../support/transactions/open-view.ts';
import { until } from '../../support/waiting.ts';

/** Makes a store with this many transactions whose view was rendered by the previous version. */
async function olderView(transactions: number) {
  const folder = temporaryFolder();
  const operator = new Operator({ FUEL_DATA_DIR: folder, FUEL_LOG_LEVEL: 'silent' });
  await operator.import(linesOf(minutely(transactions)), { wait: false });
  const first = await start(operator);
  await until(async () => ((await first.engines.view().checkpoint())?.position ?? 0) >= first.head);
  await first.stop();
  await alterServedIn(folder, (made) => ({ ...made, rendering: made.rendering - 1 }));
  return operator;
}

/** Runs the role in this thread. It starts real threads. */
async function start(operator: Operator) {
  const engines = await openEngines(operator.config, systemClock);
  const stopping = new AbortController();
  const context: JobContext = {
    entry: THREAD_ENTRY,
    config: operator.config,
    holder: 'this',
    engines,
    clock: systemClock,
    log: memoryLog([]),
    metrics: workMetrics(new Registry()),
    signal: stopping.signal,
    report: () => undefined,
  };
  const stop = (): void => stopping.abort();
  const head = await engines.store().head();
  const ended = projector(context, undefined);
  let closed: Promise<void> | undefined;
  const end = (): Promise<void> => {
    stop();
    closed ??= ended.finally(() => engines.close());
    return closed;
  };
  onTestFinished(end);
  return { engines, head, ended, ask: stop, stop: end };
}

const rendering = async (engines: Engines) => (await engines.view().checkpoint())?.rendering;

test('the projector has records that were rendered otherwise rendered anew beside the served view', async () => {
  const { engines, head } = await start(await olderView(50));
  await until(async () => (await rendering(engines)) === RENDERING_VERSION);
  expect((await engines.view().checkpoint())?.position).toBeGreaterThanOrEqual(head);
});

test('the projector ends when the thread that builds the new view has ended', async () => {
  const { engines, ended, ask } = await start(await olderView(4_000));
  const coordination = engines.coordination();
  await until(() => isBuilding(coordination));
  ask();
  await ended;
  expect(await isBuilding(coordination)).toBe(false);
  expect(await rendering(engines)).toBe(RENDERING_VERSION - 1);
});
