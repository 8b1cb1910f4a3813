import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { openEngines } from '../../engines/engines.ts';
import type { Damage } from '../../event-store/event-store.ts';
import { readLog } from '../verify/read-log.ts';
import type { VerifyScope } from '../verify/scope.ts';
import { type DeliveryFindings, DeliveryJudge } from '../verify/verify-deliveries.ts';
import { type ViewFindings, ViewJudge } from '../verify/verify-view.ts';
import { DAY_MS } from './day.ts';

export interface VerifyThreadData {
  readonly config: Config;
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

export type VerifyThreadMessage =
  | { readonly kind: 'judged'; readonly events: number }
  | { readonly kind: 'found'; readonly view?: ViewFindings; readonly deliveries?: DeliveryFindings };

/** Judges the parts of the log that it is given, and reports its findings when it is given no more. */
const { config, scope, withView, damage, logStartedAtMs } = workerData as VerifyThreadData;
const engines = await openEngines(config, systemClock);
const store = engines.store();
const view = withView ? new ViewJudge({ store, view: engines.view(), damage, ...scope }) : undefined;
const deliveries =
  logStartedAtMs === undefined
    ? undefined
    : new DeliveryJudge({
        ...scope,
        store,
        damage,
        queue: engines.queue(),
        clock: systemClock,
        environment: config.FUEL_ENVIRONMENT,
        retentionMs: config.FUEL_DELIVERY_RETENTION_DAYS * DAY_MS,
        logStartedAtMs,
      });
const judges = [view, deliveries].filter((judge) => judge !== undefined);
const post = (message: VerifyThreadMessage): void => parentPort?.postMessage(message);

parentPort?.on('message', (part: LogPart | 'end') => void handle(part));
post({ kind: 'judged', events: 0 });

async function handle(part: LogPart | 'end'): Promise<void> {
  if (part !== 'end') {
    let events = 0;
    const onProgress = (count: number): void => {
      events = count;
    };
    await readLog(judges, { store, ...part, onProgress });
    post({ kind: 'judged', events });
    return;
  }
  post({
    kind: 'found',
    ...(view && { view: view.findings() }),
    ...(deliveries && { deliveries: deliveries.findings() }),
  });
  await engines.close();
  parentPort?.close();
}
