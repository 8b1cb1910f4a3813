import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../src/engines/engines.ts';
import type { MetricsJson } from '../../../src/service/ops/work-metrics.ts';
import { startJob } from '../../../src/service/threads/start-job.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const JOB = new URL('../../../src/service/threads/job.ts', import.meta.url).href;

/** The steps of a job, as the numbers that it writes down. */
const [ENDED, COUNTED, CLOSED] = [1, 2, 3];

/** Runs the job in this text, with `context` in scope, on engines that report when they are closed. */
function run(text: string, { isCounted = true } = {}) {
  const folder = temporaryFolder();
  const [file, log] = [join(folder, 'job.mjs'), join(folder, 'steps')];
  writeFileSync(log, '');
  writeFileSync(
    file,
    `import { runJob } from ${JSON.stringify(JOB)};
     import { appendFileSync } from 'node:fs';
     import { parentPort } from 'node:worker_threads';
     const post = parentPort.postMessage.bind(parentPort);
     const did = (step) => appendFileSync(${JSON.stringify(log)}, String(step));
     parentPort.postMessage = (message) => { post(message); if (message.kind === 'metrics') did(${COUNTED}); };
     const turn = () => new Promise((resolve) => setTimeout(resolve, 20));
     const cook = async (context) => { ${text} };
     await runJob({ cook: async () => cook }, async () => ({ close: async () => { await turn(); did(${CLOSED}); } }));`,
  );
  const steps = () => [...readFileSync(log, 'utf8')].map(Number);
  const metrics: MetricsJson[] = [];
  const host = { entry: pathToFileURL(file), config: loadConfig({}, 'command'), holder: 'this' };
  const started = startJob(host, {
    job: 'cook',
    log: {},
    memory: { youngMb: 12, oldMb: 64 },
    ...(isCounted && { onMetrics: (counted: MetricsJson) => metrics.push(counted) }),
  });
  onTestFinished(() => started.stop());
  return { started, steps, metrics };
}

test('a job that is asked to stop has ended when its engines are closed', async () => {
  const { started, steps } = run(`
    while (!context.signal.aborted) await turn();
    did(${ENDED});`);
  await started.stop();
  expect(steps()).toEqual([ENDED, COUNTED, CLOSED]);
});

test('a job that fails has closed its engines, and reported what it counted', async () => {
  const { started, steps, metrics } = run(`
    context.metrics.loopDelay.set({ thread: 'last' }, 7);
    await turn();
    throw new Error('burnt');`);
  await expect(started.failed).rejects.toThrow('burnt');
  expect(steps()).toEqual([COUNTED, CLOSED]);
  expect(JSON.stringify(metrics.at(-1))).toContain('"thread":"last"');
});

test('a job whose metrics nobody takes counts nothing', async () => {
  const { started, steps } = run(`did(${ENDED});`, { isCounted: false });
  await started.ended;
  expect(steps()).toEqual([ENDED, CLOSED]);
});
