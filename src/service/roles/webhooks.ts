import { Directory } from '../../accounts/directory/fold/directory.ts';
import { DirectoryReach, LiveDirectory } from '../../accounts/directory/live-directory.ts';
import type { SharedRows } from '../../accounts/directory/rows/shared-rows.ts';
import { openMasterKeys } from '../../accounts/master-key.ts';
import { steadyClock, systemClock } from '../../base/clock.ts';
import { retentionMs } from '../../base/config/config.ts';
import { aborted } from '../../base/pause.ts';
import { retryWhileUnavailable } from '../../base/retry.ts';
import { timeForAges } from '../../event-store/reads.ts';
import { Dispatcher } from '../../push/dispatch/dispatcher.ts';
import { longestWaitMs, retryDelayMs } from '../../push/dispatch/retry-schedule.ts';
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
import type { JobContext } from '../threads/job.ts';

type Context = Pick<JobContext, 'config' | 'engines' | 'log' | 'holder' | 'signal' | 'metrics' | 'report'>;

interface Started {
  /** The rows that the main thread's directory started from, if any. */
  readonly directory: SharedRows | undefined;
}

/**
 * The role `webhooks`: creates deliveries from events and sends them until `signal` aborts. Then no new attempt begins,
 * and those in progress are recorded. Rejects with the error of the event store or the subscription. It has a thread of
 * its own: receivers have half a second to answer, and the API must not distort that measurement.
 */
export async function webhooks(run: Context, started: Started): Promise<void> {
  const ends = (atMs: number): void => run.metrics.deliveries.clientCertificateEnds(atMs);
  const sender = configuredSender(run.config, run.log, ends);
  const ended = new AbortController();
  const until = AbortSignal.any([run.signal, ended.signal]);
  const following = new AbortController(); // ends last, since attempts are judged by the directory until they end
  const parts = createParts(run, { ...started, sender, following: following.signal });
  const { masterKeys, dispatcher, live, fanOut } = parts;
  const { config, engines, log } = run;
  const onState = (missing: string | undefined): void => run.report({ kind: 'ready', missing });
  const directoryEnded = live.run();
  onState('the directory of the webhooks has not caught up');
  try {
    await Promise.race([live.whenCaughtUp, directoryEnded, aborted(until)]);
    if (!until.aborted) {
      await assertSecretsReadable(engines.store(), engines.accounts(), { masterKeys, log });
      // Once before a clock that jumps can have recorded anything.
      const agesNow = () => timeForAges(engines.store(), systemClock);
      await retryWhileUnavailable(agesNow, { log, signal: until, component: 'webhooks' });
      dispatcher.start();
      startRetention({
        store: engines.store(),
        queue: engines.queue(),
        clock: systemClock,
        log,
        retentionMs: retentionMs(config),
        signal: until,
      });
      const fanningOut = runFanOut({
        subscriptions: engines.subscriptions(),
        fanOut,
        log,
        signal: until,
        onState,
      });
      try {
        await Promise.race([fanningOut, directoryEnded, dispatcher.failed]);
      } finally {
        ended.abort();
        await fanningOut.catch(() => undefined); // reported by the race
      }
    }
  } finally {
    ended.abort();
    await dispatcher.stop();
    await sender.close();
    following.abort();
    await directoryEnded.catch(() => undefined); // reported by the race
  }
}

function createParts(
  run: Context,
  own: Started & { readonly sender: Sender; readonly following: AbortSignal },
) {
  const { config, engines, log, holder, report } = run;
  const directory = new Directory();
  const masterKeys = openMasterKeys(config);
  const store = engines.store();
  const queue = engines.queue();
  const environment = config.FUEL_ENVIRONMENT;
  const reach = new DirectoryReach();
  const directoryAt = (position: number) => reach.reach(position);
  const dispatcher = new Dispatcher({
    queue,
    directory,
    directoryAt,
    environment,
    sender: own.sender,
    requestFor: createRequests(masterKeys, configuredPresigner(config)),
    metrics: run.metrics.deliveries,
    longestWaitMs: longestWaitMs(config.FUEL_WEBHOOK_RETRY_DELAYS),
    retryDelayMs: (delivery) => retryDelayMs(config.FUEL_WEBHOOK_RETRY_DELAYS, delivery),
    appendHealthEvent: createHealthEvents(store, systemClock),
    clock: systemClock,
    log,
    holder,
    owners: new HostOwners({ coordination: engines.coordination(), holder, steady: steadyClock }),
    steady: steadyClock,
  });
  const fanOut = new FanOut({
    store,
    queue,
    history: new AccountHistory({ store, rows: engines.accounts() }),
    accept: (deliveries) => dispatcher.accept(deliveries),
    clock: systemClock,
    environment,
    retentionMs: retentionMs(config),
  });
  const live = new LiveDirectory({
    store,
    directory,
    shared: own.directory,
    clock: systemClock,
    log,
    signal: own.following,
    onEvent: (event, place) => dispatcher.accountEvent(event, place),
    onMoved(position) {
      reach.moved(position);
      report({ kind: 'moved', position });
    },
  });
  return { directory, masterKeys, dispatcher, fanOut, live };
}
