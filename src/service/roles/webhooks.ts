import { openMasterKeys } from '../../accounts/master-key.ts';
import { RowsFreshness } from '../../accounts/rows/freshness.ts';
import { steadyClock, systemClock } from '../../base/clock.ts';
import { retentionMs } from '../../base/config/config.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import { timeForAges } from '../../event-store/reads.ts';
import { Dispatcher } from '../../push/dispatch/dispatcher.ts';
import { longestWaitMs, retryDelayMs } from '../../push/dispatch/retry-schedule.ts';
import { followEnds } from '../../push/ends.ts';
import { AccountHistory } from '../../push/fan-out/account-history.ts';
import { FanOut } from '../../push/fan-out/fan-out.ts';
import { runFanOut } from '../../push/fan-out/run-fan-out.ts';
import { createHealthEvents } from '../../push/health/health-events.ts';
import { createRequests } from '../../push/message/envelope.ts';
import { HostOwners } from '../../push/pace/host-owners.ts';
import { startRetention } from '../../push/retention.ts';
import { configuredSender, type Sender } from '../../push/sender/sender.ts';
import { configuredPresigner } from '../../records/presign.ts';
import { assertSecretsReadable } from '../stores/store-binding.ts';
import type { Job, JobContext } from '../threads/job.ts';

type Context = Pick<JobContext, 'config' | 'engines' | 'log' | 'holder' | 'metrics'>;

/**
 * The role `webhooks`: creates deliveries from events and sends them until `signal` aborts. Then no new attempt begins,
 * and those in progress are recorded. Rejects with the error of the event store or the subscription. It has a thread of
 * its own: receivers have half a second to answer, and the API must not distort that measurement.
 */
export const webhooks: Job<undefined> = async (run) => {
  const ends = (atMs: number): void => run.metrics.deliveries.clientCertificateEnds(atMs);
  const sender = configuredSender(run.config, run.log, ends);
  const ended = new AbortController();
  const until = AbortSignal.any([run.signal, ended.signal]);
  const { rows, masterKeys, dispatcher, fanOut } = createParts(run, sender);
  const { config, engines, log, holder } = run;
  const [store, queue] = [engines.store(), engines.queue()];
  const onState = (missing: string | undefined): void => run.report({ kind: 'ready', missing });
  onState('the rows of accounts have not caught up');
  try {
    await rows.untilFresh(until);
    if (until.aborted) return;
    const beforeTheFirst = async (): Promise<void> => {
      await assertSecretsReadable(store, engines.accounts(), { masterKeys, log });
      await timeForAges(store, systemClock); // before a clock that jumps can have recorded anything
    };
    await retryWhileUnavailable(beforeTheFirst, { log, signal: until, component: 'webhooks' });
    if (until.aborted) return;
    dispatcher.start();
    const kept = { retentionMs: retentionMs(config), signal: until };
    startRetention({ ...kept, store, queue, clock: systemClock, log });
    const subscriptions = engines.subscriptions();
    const fanningOut = runFanOut({ subscriptions, fanOut, log, signal: until, onState });
    const ending = followEnds({
      store,
      queue,
      rows: engines.accounts(),
      coordination: engines.coordination(),
      environment: config.FUEL_ENVIRONMENT,
      holder,
      clock: systemClock,
      log,
      signal: until,
    });
    try {
      await Promise.race([fanningOut, ending, dispatcher.failed]);
    } finally {
      ended.abort();
      await Promise.allSettled([fanningOut, ending]); // reported by the race
    }
  } finally {
    ended.abort();
    await dispatcher.stop();
    await sender.close();
  }
};

function createParts(run: Context, sender: Sender) {
  const { config, engines, log, holder } = run;
  const masterKeys = openMasterKeys(config);
  const [store, queue, tables] = [engines.store(), engines.queue(), engines.accounts()];
  const environment = config.FUEL_ENVIRONMENT;
  const dispatcher = new Dispatcher({
    queue,
    rows: tables,
    environment,
    sender,
    log,
    holder,
    requestFor: createRequests(masterKeys, configuredPresigner(config)),
    metrics: run.metrics.deliveries,
    longestWaitMs: longestWaitMs(config.FUEL_WEBHOOK_RETRY_DELAYS),
    retryDelayMs: (delivery) => retryDelayMs(config.FUEL_WEBHOOK_RETRY_DELAYS, delivery),
    appendHealthEvent: createHealthEvents(store, systemClock),
    clock: systemClock,
    owners: new HostOwners({ coordination: engines.coordination(), holder, steady: steadyClock }),
    steady: steadyClock,
  });
  const fanOut = new FanOut({
    store,
    queue,
    environment,
    clock: systemClock,
    retentionMs: retentionMs(config),
    history: new AccountHistory({ store, rows: tables }),
    accept: (deliveries) => dispatcher.accept(deliveries),
  });
  const maxAgeMs = config.FUEL_DIRECTORY_MAX_AGE;
  const rows = new RowsFreshness({ tables, store, clock: systemClock, maxAgeMs });
  return { rows, masterKeys, dispatcher, fanOut };
}
