import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { within } from '../support/waiting.ts';

const FILE = (name: string) => JSON.stringify(fileURLToPath(new URL(`../../src/${name}`, import.meta.url)));

/** Logs 64 MB, reports the duration on standard error, and ends when asked to. */
const WRITER = `
  import { once } from 'node:events';
  import { setImmediate as turn } from 'node:timers/promises';
  const { createLog, droppedLogLines } = await import(${FILE('base/log.ts')});
  const { createMetrics } = await import(${FILE('service/ops/metrics.ts')});
  const metrics = createMetrics();
  const log = createLog('info');
  const text = 'x'.repeat(1000);
  log.info({ path: '/\\u009b2J\\u202e' }, 'first');
  const before = process.memoryUsage().rss;
  for (let n = 0; n < 64_000; n++) {
    log.info({ text }, 'line');
    if (n % 500 === 0) await turn();
  }
  const grown = process.memoryUsage().rss - before;
  const metric = /^fuel_log_lines_dropped_total (\\d+)$/m.exec(await metrics.registry.metrics())[1];
  process.stderr.write(JSON.stringify({ grown, dropped: droppedLogLines(), metric: Number(metric) }) + '\\n');
  await once(process.stdin, 'data');
  process.stdin.destroy();
`;

/** Does the same in a thread without waiting for it. Prints how many dropped lines the process knows of. */
const THREAD = `
  import { Worker } from 'node:worker_threads';
  const { droppedLogLines } = await import(${FILE('base/log.ts')});
  const inThread = 'import(require("node:worker_threads").workerData).then(({ createLog }) => {' +
    'const log = createLog("info"); const text = "x".repeat(1000);' +
    'for (let n = 0; n < 4000; n++) log.info({ text }, "line");' +
    'require("node:worker_threads").parentPort.postMessage("done"); })';
  const worker = new Worker(inThread, { eval: true, execArgv: [], workerData: ${FILE('base/log.ts')} });
  worker.once('message', () => process.stderr.write(JSON.stringify({ dropped: droppedLogLines() }) + '\\n'));
`;

/** Runs a module whose standard output is not read yet. Returns its standard error. */
async function stalled(module: string) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', module], { stdio: 'pipe' });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  const told = new Promise<string>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.endsWith('\n')) resolve(said);
    });
  });
  return { child, state: JSON.parse(await within(told, 30_000, () => `nothing was told: ${said}`)) };
}

test('a stalled reader does not fill the memory; dropped lines are counted, and reported once it reads', async () => {
  const { child, state } = await stalled(WRITER);
  expect(state.dropped).toBeGreaterThan(50_000);
  expect(state.metric).toBe(state.dropped);
  expect(state.grown).toBeLessThan(48 * 1024 * 1024);
  let text = '';
  const told = new Promise<string>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const found = /^.*log lines were dropped.*$/m.exec(text)?.[0];
      if (found?.endsWith('}')) resolve(found);
    });
  });
  const line = JSON.parse(await within(told, 10_000, 'no line says how many were dropped'));
  expect(line).toMatchObject({ dropped: state.dropped, level: 40 });
  expect(text).toContain('"path":"/\\u009b2J\\u202e"');
  child.stdin.write('x');
  expect(await once(child, 'close')).toEqual([0, null]);
});

test('what a thread drops is counted with the rest of its process', async () => {
  const { state } = await stalled(THREAD);
  expect(state.dropped).toBeGreaterThan(2_000);
});

/** Three threads that log 2,000 lines each at the same time. */
const THREE_THREADS = `
  import { Worker } from 'node:worker_threads';
  const { createLog } = await import(${FILE('base/log.ts')});
  const write = 'import(require("node:worker_threads").workerData).then(({ createLog }) => {' +
    'const log = createLog("info"); const text = "y".repeat(300);' +
    'for (let n = 0; n < 2000; n++) log.info({ text }, "line"); })';
  for (let n = 0; n < 2; n++) new Worker(write, { eval: true, execArgv: [], workerData: ${FILE('base/log.ts')} });
  const log = createLog('info');
  for (let n = 0; n < 2000; n++) log.info({ text: 'z'.repeat(300) }, 'line');
`;

test('the lines of threads that log at once are never mixed, through a pipe whose reader is slow', async () => {
  const args = ['-c', '"$0" --input-type=module -e "$1" | (sleep 0.5; cat)', process.execPath, THREE_THREADS];
  const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await once(child, 'close');
  const lines = text.trimEnd().split('\n');
  expect(lines).toHaveLength(6_000);
  for (const line of lines) expect(() => JSON.parse(line), line.slice(0, 500)).not.toThrow();
});

/** Logs to a full disk, continues, and ends when asked to. */
const FULL = `
  import { once } from 'node:events';
  const { createLog } = await import(${FILE('base/log.ts')});
  const log = createLog('info');
  for (let n = 0; n < 3; n++) {
    log.info('line');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  log.fatal('flushed at once');
  process.stderr.write('works\\n');
  await once(process.stdin, 'data');
  process.stdin.destroy();
`;

test('a full disk is reported once, stops nothing, and does not keep the process from ending', async () => {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, ['--input-type=module', '-e', FULL], {
    stdio: ['pipe', full, 'pipe'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
    closeSync(full);
  });
  let said = '';
  const works = new Promise<void>((resolve) => {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('works')) resolve();
    });
  });
  await within(works, 10_000, () => `it hangs: ${said}`);
  child.stdin?.write('x');
  expect(await within(once(child, 'close'), 10_000, 'it does not end')).toEqual([0, null]);
  expect(said).toBe('fuel: cannot write the log, retrying: ENOSPC: no space left on device, write\nworks\n');
});
