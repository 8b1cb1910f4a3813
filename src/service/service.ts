import type Koa from 'koa';
import type { RowsFreshness } from '../accounts/rows/freshness.ts';
import { type Clock, steadyClock } from '../base/clock.ts';
import type { Config } from '../base/config/config.ts';
import type { Role } from '../base/config/settings.ts';
import type { DiskState } from '../base/disk/disk.ts';
import { urlHost } from '../base/listen.ts';
import type { Log } from '../base/log.ts';
import { retryWhileUnavailable } from '../base/retry.ts';
import { startTracing } from '../base/tracing/start-tracing.ts';
import { world } from '../base/world.ts';
import { assertCheckpoint } from '../event-store/store-identity.ts';
import { VIEW_NAME } from '../pull/view/projector.ts';
import { claimDeliveryLog } from '../push/delivery-log.ts';
import { createMailer } from '../push/notices/mailer.ts';
import { type NotifierOptions, runNotifier } from '../push/notices/notifier.ts';
import { lastSeal } from '../seals/seals.ts';
import { EngineHealth } from './engines/engine-health.ts';
import type { Engines, OpenEngines } from './engines/engines.ts';
import { storeDisk } from './engines/store-disk.ts';
import { watchLoopDelay } from './ops/loop-delay.ts';
import { addDiskMetrics, addReadiness, createMetrics, type Metrics } from './ops/metrics.ts';
import { createOpsServer, type Readiness } from './ops/ops-server.ts';
import { readiness, readinessOf } from './ops/readiness.ts';
import { ProcessReport } from './process-report.ts';
import { type RunningApi, startApi, type WrapListener } from './roles/api.ts';
import { startAccounts } from './start-accounts.ts';
import { running, StartedParts } from './started-parts.ts';
import { assertNotMoved } from './stores/moved-store.ts';
import { bindStore, ignoredEnvironments } from './stores/store-binding.ts';
import { assertNoUnfinishedCopy } from './stores/unfinished-copy.ts';
import type { ThreadHost } from './threads/job.ts';
import { youngMb } from './threads/memory.ts';
import { type JobOptions, type JobThread, startJob } from './threads/start-job.ts';

/** An attempt creates TLS objects. With a smaller young generation, copying them takes a tenth of its time. */
const YOUNG_WEBHOOKS_MB = 48;
/** All attempts under way have their records, and up to 256 KiB of an answer each. */
const OLD_WEBHOOKS_MB = 256;

export interface ServiceOptions {
  readonly config: Config;
  readonly roles: readonly Role[];
  readonly log: Log;
  readonly clock: Clock;
  readonly openEngines: OpenEngines;
  /** The file that runs in each of its threads. */
  readonly entry: URL;
  /** The operator's part of the process. */
  readonly operator: OperatorSide;
  /** Ends the wait for unavailable stores. */
  readonly signal?: AbortSignal;
  /** Wraps the listener of the role `api`. */
  readonly wrapApi?: WrapListener;
}

/** The operator's part of a process: the console's pages and the nightly work. */
export interface OperatorSide {
  /** Answers the other requests to the operations listener, even before the engines are reached. */
  pages(readiness: () => Promise<Readiness>): Koa.Middleware;
  /** Called when the stores are open and the rows of accounts are up to date. */
  start(process: RunningProcess, parts: StartedParts): void;
}

/** A process as the operator's side sees it. */
export interface RunningProcess {
  readonly config: Config;
  readonly log: Log;
  readonly clock: Clock;
  /** Identifies this process as a holder of leases. */
  readonly holder: string;
  readonly roles: readonly Role[];
  readonly startedAtMs: number;
  readonly engines: Engines;
  readonly metrics: Metrics;
  readonly readiness: () => Promise<Readiness>;
  /** Reads the disk of the embedded files, if there are any. */
  readonly disk: (() => Promise<DiskState>) | undefined;
}

export interface Service {
  /** The URL of the API; `undefined` without the role `api`. */
  readonly apiUrl: string | undefined;
  readonly opsUrl: string;
  /** Rejects when a part ends with an error. Stays pending while all parts work. */
  readonly failed: Promise<never>;
  /**
   * Stops being ready, answers requests in progress, stops the parts and closes the stores, in this order. If parts
   * fail to stop it rejects, after stopping the others.
   */
  stop(): Promise<void>;
}

/**
 * Starts the roles of one process: first the operations listener, so that it can show what the start waits for, then
 * the stores once they can be reached, and the public listener last. Waits while a store is unavailable. Rejects with
 * the signal's reason if that ends the wait, and with `STORE_MISMATCH` if the view or the delivery log belongs to
 * another event store. Nothing is left running then.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, clock, log, openEngines, signal = new AbortController().signal } = options;
  const engines = await openEngines(config, clock, { log });
  const parts = new StartedParts(log);
  parts.add('spans', await startTracing(config, log));
  parts.add('stores', { stop: () => engines.close() });
  try {
    const health = new EngineHealth(engines.remote, steadyClock);
    const disk = storeDisk(config, engines);
    const operations = parts.add(
      'operations listener',
      await startOperations({ ...options, engines }, health, disk),
    );
    await health.allReached(log, signal);
    await retryWhileUnavailable(() => checkStores(options, engines), { log, signal, component: 'start' });
    signal.throwIfAborted();
    const apiUrl = await startParts({ ...options, signal }, { engines, health, operations, disk, parts });
    return { apiUrl, opsUrl: operations.url, failed: parts.failed, stop: () => parts.stop() };
  } catch (error) {
    await parts.stop().catch(() => undefined); // logged; the caller needs the reason why it did not start
    throw error;
  }
}

/**
 * Checks the stores before anything starts. A view of another store, or one that is ahead of a restored store, must
 * never be served, and deliveries must not start with a delivery log that belongs to another event store.
 */
async function checkStores({ config, roles, clock, log }: ServiceOptions, engines: Engines): Promise<void> {
  await assertNotMoved({ ...config, ...engines }, engines.store());
  await assertNoUnfinishedCopy(engines.coordination());
  // On several machines a process without webhooks may have a different key, since only its cursors depend on it.
  const withoutSecrets = !engines.embedded.includes('store') && !roles.includes('webhooks');
  const storeId = await bindStore(engines.store(), config, { clock, withoutSecrets });
  for (const ignored of await ignoredEnvironments(engines.store())) log.error(ignored);
  const checkpoint = await engines.view().checkpoint();
  if (checkpoint !== undefined) {
    await assertCheckpoint(checkpoint, { store: engines.store(), storeId }, VIEW_NAME);
  }
  if (roles.includes('webhooks')) await claimDeliveryLog(engines.store(), engines.queue(), clock);
}

interface Operations {
  readonly url: string;
  readonly metrics: Metrics;
  /** Replaced once the parts have been started. */
  readiness: () => Promise<Readiness>;
  stop(): Promise<void>;
}

async function startOperations(
  { config, log, operator, engines }: ServiceOptions & { readonly engines: Engines },
  health: EngineHealth,
  disk: RunningProcess['disk'],
): Promise<Operations> {
  const metrics = createMetrics();
  addReadiness(metrics.registry, () => operations.readiness());
  if (disk !== undefined) addDiskMetrics(metrics.registry, disk);
  const readiness = (): Promise<Readiness> => operations.readiness();
  const checkpoint = async (): Promise<string | undefined> => (await lastSeal(engines.store()))?.note;
  const server = createOpsServer({ readiness, metrics, log, checkpoint, console: operator.pages(readiness) });
  const { host } = config.FUEL_OPS_LISTEN;
  const { port } = await server.listen(config.FUEL_OPS_LISTEN);
  const operations: Operations = {
    url: `http://${urlHost(host)}:${port}`,
    metrics,
    readiness: async () =>
      readinessOf(false, { started: 'the stores are not open yet', ...(await health.state()) }),
    stop: () => server.stop(),
  };
  return operations;
}

interface Starting {
  readonly engines: Engines;
  readonly health: EngineHealth;
  readonly operations: Operations;
  readonly disk: RunningProcess['disk'];
  readonly parts: StartedParts;
}

/**
 * Starts the parts, each after those that it uses, so that they stop in the opposite order: the process report, the
 * follower of accounts, the figures, the role `projector`, the operator's side, `notices`, `webhooks`, and last the public
 * listener, which needs rows of accounts that have caught up. Returns the URL of that listener.
 */
async function startParts(
  options: ServiceOptions & { readonly signal: AbortSignal },
  { engines, health, operations, disk, parts }: Starting,
): Promise<string | undefined> {
  const { config, roles, log, clock, entry, signal, operator } = options;
  const { metrics } = operations;
  const startedAtMs = clock.now();
  const holder = holderName();
  const host: ThreadHost = { entry, config, holder };
  const has = (role: Role): boolean => roles.includes(role);
  const [store, coordination] = [engines.store(), engines.coordination()];
  const report = parts.add(
    'process report',
    new ProcessReport({ coordination, clock, log, id: holder, roles }),
  );
  const startThread = (
    name: Role | 'accounts',
    thread: Omit<JobOptions, 'job' | 'log' | 'onMetrics'>,
  ): JobThread => {
    const job = { job: name, log: { role: name }, ...thread };
    return parts.add(name, startJob(host, { ...job, onMetrics: (counted) => metrics.take(name, counted) }));
  };
  // The heap holds a batch and the driver's buffer, which a server's driver limits only by the number of events.
  const ofBatches = { youngMb: youngMb(engines), oldMb: engines.embedded.includes('store') ? 96 : 256 };
  startThread('accounts', { memory: ofBatches });
  const rows = await startAccounts({ config, engines, clock, parts, signal });
  const figures = {
    store,
    coordination,
    view: engines.view(),
    subscriptions: engines.subscriptions(),
    queue: engines.queue(),
    accounts: engines.accounts(),
    environment: config.FUEL_ENVIRONMENT,
    clock,
    log,
    isBackedUp: engines.embedded.includes('store'),
  };
  const runFigures = (stopping: AbortSignal) => metrics.shared.run(figures, stopping);
  parts.add('figures', running(runFigures));
  parts.add('loop delay', watchLoopDelay(metrics.loopDelay, 'main'));
  if (has('projector')) startThread('projector', { memory: ofBatches });
  const known = { config, log, clock, holder, roles, startedAtMs, engines, metrics, disk };
  operator.start({ ...known, readiness: () => operations.readiness() }, parts);
  if (has('notices')) startNotices(config, { ...figures, holder, givenUp: metrics.noticesGivenUp }, parts);
  const webhooks = has('webhooks')
    ? startThread('webhooks', {
        memory: { youngMb: youngMb(engines, YOUNG_WEBHOOKS_MB), oldMb: OLD_WEBHOOKS_MB },
      })
    : undefined;
  const api = has('api')
    ? parts.add('API', await startAnswering(options, { engines, metrics, rows }))
    : undefined;
  let isStopping = false;
  parts.add('readiness', {
    stop() {
      isStopping = true;
    },
  });
  report.ready();
  operations.readiness = () =>
    readiness({
      rows,
      isStopping,
      engines: health,
      disk,
      subscription: webhooks,
      writes: roles.some((role) => role !== 'api'),
    });
  log.info({ roles, api: api?.url, ops: operations.url, environment: config.FUEL_ENVIRONMENT }, 'listening');
  return api?.url;
}

interface Answering {
  readonly engines: Engines;
  readonly metrics: Metrics;
  readonly rows: RowsFreshness;
}

/** Starts the role `api`, which answers while the rows of accounts are fresh. */
function startAnswering(
  { config, log, clock, wrapApi }: ServiceOptions,
  { engines, metrics, rows }: Answering,
): Promise<RunningApi> {
  return startApi({
    config,
    engines,
    accounts: engines.access(),
    metrics,
    log,
    clock,
    wrap: wrapApi,
    availability: () => (rows.isFresh ? 'ready' : 'unavailable'),
  });
}

/** This role waits for the mail server most of the time, so it needs no thread. */
function startNotices(
  config: Config,
  own: Omit<NotifierOptions, 'mailer' | 'operatorEmail' | 'signal'>,
  parts: StartedParts,
): void {
  const mailer = createMailer(config);
  const notifier = { ...own, mailer, operatorEmail: config.FUEL_OPERATOR_EMAIL ?? null };
  const work = (stopping: AbortSignal) => runNotifier({ ...notifier, signal: stopping });
  parts.add(
    'notices',
    running((stopping) => work(stopping).finally(() => mailer.close())),
  );
}

function holderName(): string {
  const { host, pid } = world.self();
  return `${host}-${pid}-${world.randomUUID().slice(0, 8)}`;
}
