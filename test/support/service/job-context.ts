import { Registry } from 'prom-client';
import { systemClock } from '../../../src/base/clock.ts';
import type { Config } from '../../../src/base/config/config.ts';
import { THREAD_ENTRY } from '../../../src/operator/serve/jobs.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { workMetrics } from '../../../src/service/ops/work-metrics.ts';
import type { FromThread, JobContext } from '../../../src/service/threads/job.ts';
import { memoryLog } from './api.ts';

/** Makes the context of a job that runs in this thread. `stop` asks it to end. */
export function jobContext(config: Config, engines: Engines) {
  const stopping = new AbortController();
  const reports: FromThread[] = [];
  const lines: Record<string, unknown>[] = [];
  const context: JobContext = {
    ...{ entry: THREAD_ENTRY, config, holder: 'this', engines, clock: systemClock },
    ...{ log: memoryLog(lines), metrics: workMetrics(new Registry()), signal: stopping.signal },
    report: (message) => void reports.push(message),
  };
  return { context, reports, lines, stop: () => stopping.abort() };
}
