import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads';
import { watchFunctions } from './ran.ts';

/**
 * Loaded into each thread of a process before anything else (`node --import`). On SIGUSR2 each thread writes which
 * functions ran since the last time, to a file `<count>-<thread>` in the folder FUEL_TEST_PROBE.
 */
const folder = process.env.FUEL_TEST_PROBE ?? '';
const functionsRun = watchFunctions();
let count = 0;

function write(): void {
  count += 1;
  const path = join(folder, `${count}-${threadId}`);
  writeFileSync(`${path}.part`, functionsRun().join('\n'));
  renameSync(`${path}.part`, path);
}

const channel = new BroadcastChannel('test probe');
channel.onmessage = write;
channel.unref();
if (isMainThread) {
  process.on('SIGUSR2', () => {
    channel.postMessage('write');
    write();
  });
}
