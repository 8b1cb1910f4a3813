import { retentionMs } from '../../base/config/config.ts';
import type { Damage } from '../../event-store/event-store.ts';
import type { Job } from '../../service/threads/job.ts';
import { readLog, type VerifyScope } from '../verify/read-log.ts';
import { type DeliveryFindings, DeliveryJudge } from '../verify/verify-deliveries.ts';
import { type ViewFindings, ViewJudge } from '../verify/verify-view.ts';

export interface JudgeData {
  readonly scope: VerifyScope;
  readonly withView: boolean;
  readonly damage: readonly Damage[];
  /** Since when the delivery log is judged; `undefined` where it is not. */
  readonly logStartedAtMs: number | undefined;
}

/** A part of the log: positions after `after` up to `upTo`. */
export interface LogPart {
  readonly after: number;
  readonly upTo: number;
}

/** Asks for a part, and says of how many events the last one was; or, when there is none left, what was found. */
export type JudgeResult =
  | { readonly judged: number }
  | { readonly view: ViewFindings | undefined; readonly deliveries: DeliveryFindings | undefined };

/** Few: what a block creates is dropped before the garbage collector copies it. More save only remote stores round trips. */
const BLOCK = 100;

/** Judges the parts of the log that it is given, and reports its findings when it is given no more. */
export const judge: Job<JudgeData> = async (context, { scope, withView, damage, logStartedAtMs }) => {
  const { config, engines, clock, report, onTold } = context;
  const store = engines.store();
  const view = withView ? new ViewJudge({ store, view: engines.view(), damage, ...scope }) : undefined;
  const deliveries =
    logStartedAtMs === undefined
      ? undefined
      : new DeliveryJudge({
          ...{ ...scope, store, damage, clock, logStartedAtMs },
          queue: engines.queue(),
          environment: config.FUEL_ENVIRONMENT,
          retentionMs: retentionMs(config),
        });
  const judges = [view, deliveries].filter((each) => each !== undefined);
  const result = (value: JudgeResult): void => report({ kind: 'result', value });
  for (let judged = 0; ; ) {
    const given = new Promise<LogPart | 'end'>((resolve) =>
      onTold((part) => resolve(part as LogPart | 'end')),
    );
    result({ judged });
    const part = await given;
    if (part === 'end') break;
    const onProgress = (count: number): void => {
      judged = count;
    };
    await readLog(judges, { store, ...part, blockSize: BLOCK, onProgress });
  }
  result({ view: view?.findings(), deliveries: deliveries?.findings() });
};
