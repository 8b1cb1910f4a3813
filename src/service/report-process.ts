import type { Clock } from '../base/clock.ts';
import { ProcessReport } from '../base/coordination/process-report.ts';
import type { Log } from '../base/log.ts';
import type { Engines } from './engines/engines.ts';
import { Membership } from './membership.ts';
import type { Standing } from './ops/standing.ts';

export interface ReportedProcess {
  /** To be called with the position of each directory of the process, as it moves. */
  moved(directory: string, position: number): void;
  stop(): Promise<void>;
}

/** Reports the process and the position of its directories to the others, and keeps its standing up to date. */
export function reportProcess(options: {
  readonly engines: Engines;
  readonly clock: Clock;
  readonly log: Log;
  readonly id: string;
  readonly roles: readonly string[];
  /** The names of its directories: the main thread's, and those of threads that have their own. */
  readonly directories: readonly string[];
  readonly standing: Standing;
}): ReportedProcess {
  const { engines, clock, log, id, roles, directories, standing } = options;
  const ending = new AbortController();
  const membership = new Membership(engines.store(), { log, signal: ending.signal, standing });
  const report = new ProcessReport({
    coordination: engines.coordination(),
    clock,
    log,
    id,
    roles,
    onKnown: () => membership.joined(),
    onReported: (knownUntilMs) => standing.knownUntil(knownUntilMs),
  });
  return {
    moved: positionOfAll(directories, (position) => report.directoryMoved(position)),
    async stop() {
      ending.abort();
      await report.stop();
    },
  };
}

/** Reports the position of the directory that is furthest behind, once all have one. */
function positionOfAll(
  names: readonly string[],
  report: (position: number) => void,
): (name: string, position: number) => void {
  const positions = new Map<string, number>();
  return (name, position) => {
    positions.set(name, position);
    if (positions.size === names.length) report([...positions.values()].reduce((a, b) => Math.min(a, b)));
  };
}
