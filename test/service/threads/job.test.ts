import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../src/engines/engines.ts';
import type { MetricsJson } from '../../../src/service/ops/work-metrics.ts';
import { startJob } from '../../../src/service/threads/start-job.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const JOB = new URL('../../../src/service/threads/job.ts', import.meta.url).href;

/** Does the job of this text, with `context` in scope, on engines that say when they are closed. */
function run(text: string, { isCounted = true } = {}) {
  const file = join(temporaryFolder(), 'job.mjs');
  writeFileSync(
    file,
    `import { runJob } from ${JSON.stringify(JOB)};
     import { parentPort } from 'node:worker_threads';
     const post = parentPort.postMessage.bind(parentPort);
     const result = (value) => post({ kind: 'result', value });
     parentPort.postMessage = (message) => { post(message); if (message.kind === 'metrics') result('counted'); };
     const turn = () => new Promise((resolve) => setTimeout(resolve, 20));
     const cook = async (context) => { ${text} };
     await runJob({ cook: async () => cook }, async () => ({ close: async () => { await turn(); result('closed'); } }));`,
  );
  const results: unknown[] = [];
  const metrics: MetricsJson[] = [];
  const host = { entry: pathToFileURL(file), config: loadConfig({}, 'command'), holder: 'this' };
  const started = startJob(host, {
    ...{ job: 'cook', memory: { youngMb: 12, oldMb: 64 } },
    onResult: (value) => results.push(value),
    ...(isCounted && { onMetrics: (counted: MetricsJson) => metrics.push(counted) }),
  });
  onTestFinished(() => started.stop());
  return { started, results, metrics };
}

test('a job gets what its thread was told before it asked, in order, and has ended when its engines are closed', async () => {
  const { started, results } = run(`
    await turn();
    context.onTold(result);
    while (!context.signal.aborted) await turn();
    result('ended');`);
  for (const value of ['first', 'second']) started.tell(value);
  await started.stop();
  expect(results).toEqual(['first', 'second', 'ended', 'counted', 'closed']);
});

test('a job that fails has closed its engines, and reported what it counted', async () => {
  const { started, results, metrics } = run(`
    context.metrics.loopDelay.set({ thread: 'last' }, 7);
    await turn();
    throw new Error('burnt');`);
  await expect(started.failed).rejects.toThrow('burnt');
  expect(results).toEqual(['counted', 'closed']);
  expect(JSON.stringify(metrics.at(-1))).toContain('"thread":"last"');
});

test('a job whose metrics nobody takes counts nothing', async () => {
  const { started, results } = run("result('done');", { isCounted: false });
  await started.ended;
  expect(results).toEqual(['done', 'closed']);
});
