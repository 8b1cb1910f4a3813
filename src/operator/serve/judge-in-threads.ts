import { availableParallelism } from 'node:os';
import type { ThreadHost } from '../../service/threads/job.ts';
import { type JobOptions, startJob } from '../../service/threads/start-job.ts';
import type { DeliveryJudge } from '../verify/verify-deliveries.ts';
import type { ViewJudge } from '../verify/verify-view.ts';
import type { JudgeData, JudgeResult, LogPart } from './judge.ts';

/** Each takes a core and a hundred megabytes. */
const MAX_THREADS = 2;
/** Events of one part: some seconds of work, so that the threads end together. */
const PART = 20_000;
/** Starting the threads takes longer than to judge fewer events than these. */
const MIN_EVENTS = 50_000;
const MEMORY = { youngMb: 32, oldMb: 512 };

export interface ThreadedJudges {
  readonly view: ViewJudge | undefined;
  readonly deliveries: DeliveryJudge | undefined;
}

export interface JudgeInThreadsOptions extends JudgeData {
  readonly host: ThreadHost;
  /** The end of the log, whose positions count events: only those of the embedded store do. */
  readonly head: number;
  readonly onProgress: (events: number) => void;
  readonly partEvents?: number;
}

/** Whether several threads judge a log of this length sooner than one. */
export function paysOff(head: number): boolean {
  return head >= MIN_EVENTS && availableParallelism() > 1;
}

/** Has threads judge the log up to `head`, part by part, and gives these judges what they find. */
export async function judgeInThreads(
  { view, deliveries }: ThreadedJudges,
  { host, head, onProgress, partEvents = PART, ...data }: JudgeInThreadsOptions,
): Promise<void> {
  let after = 0;
  let judged = 0;
  const nextPart = (): LogPart | 'end' => {
    if (after >= head) return 'end';
    const part = { after, upTo: Math.min(after + partEvents, head) };
    after = part.upTo;
    return part;
  };
  const onResult: JobOptions['onResult'] = (value, { tell }) => {
    const result = value as JudgeResult;
    if ('judged' in result) {
      judged += result.judged;
      onProgress(judged);
      tell(nextPart());
      return;
    }
    if (result.view !== undefined) view?.takeOver(result.view);
    if (result.deliveries !== undefined) deliveries?.takeOver(result.deliveries);
  };
  const one = (_: unknown, n: number): Promise<void> =>
    startJob(host, { job: 'judge', name: `judge-${n + 1}`, data, memory: MEMORY, onResult }).ended;
  const threads = Array.from({ length: Math.min(MAX_THREADS, availableParallelism()) }, one);
  try {
    await Promise.all(threads);
  } catch (error) {
    after = head; // the others end with the part that they have
    await Promise.allSettled(threads);
    throw error;
  }
}
