import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Directory } from '../../projections/directory.ts';
import { assertNotMoved } from '../accounts/moved-store.ts';
import { bindStore, ignoredEnvironments } from '../accounts/store-binding.ts';
import { assertNoUnfinishedCopy } from '../accounts/unfinished-copy.ts';
import { type Clock, sinceBoot } from '../base/clock.ts';
import type { Config, Role } from '../base/config/config.ts';
import { urlHost } from '../base/listen.ts';
import type { Log } from '../base/log.ts';
import { retryWhileUnavailable } from '../base/retry.ts';
import { type Engines, openEngines } from '../engines/engines.ts';
import { assertCheckpoint } from '../event-store/store-identity.ts';
import { Console } from '../operator/console/console.ts';
import type { Proof } from '../operator/console/figures/parts.ts';
import { consoleParts } from '../operator/serve/console.ts';
import { startNightly, verifyInThread } from '../operator/serve/nightly.ts';
import { countParkedByView } from '../pull/view/operate.ts';
import { VIEW_NAME } from '../pull/view/projector.ts';
import { claimDeliveryLog } from '../push/delivery-log.ts';
import { ApiThreads, furtherApiThreads } from './api/api-threads.ts';
import { isMember } from './api/is-member.ts';
import { startApi } from './api/start-api.ts';
import { Availability } from './ops/availability.ts';
import { EngineHealth } from './ops/engine-health.ts';
import { watchLoopDelay } from './ops/loop-delay.ts';
import {
  addDiskMetrics,
  addProjectionMetrics,
  createMetrics,
  type Metrics,
  type ProjectionReading,
} from './ops/metrics.ts';
import { createOpsServer, type Readiness } from './ops/ops-server.ts';
import { Standing } from './ops/standing.ts';
import { reportProcess } from './report-process.ts';
import { startProjector, startWebhooks } from './roles/role-threads.ts';
import { runNotices } from './roles/run-notices.ts';
import { startDirectory } from './start-directory.ts';
import { StartedParts } from './started-parts.ts';
import { storeDisk } from './store-disk.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly roles: readonly Role[];
  readonly log: Log;
  readonly clock: Clock;
  /** Ends the wait for unavailable stores. */
  readonly signal?: AbortSignal;
}

export interface Service {
  /** Where the API listens; `undefined` without the role `api`. */
  readonly apiUrl: string | undefined;
  readonly opsUrl: string;
  /** Rejects when a part ends with an error; stays pending while all work. */
  readonly failed: Promise<never>;
  /**
   * Stops being ready, answers requests in progress, stops the parts, closes the stores, in this order. Rejects with an
   * `AggregateError` if parts failed to stop; the others have stopped.
   */
  stop(): Promise<void>;
}

/**
 * Starts the roles of one process: first the operations listener, so that it can show what the start waits for, then the
 * stores once they can be reached, and the public listener last. Waits whenever a store is unavailable. Rejects with the
 * signal's reason if that ends the wait, and with `STORE_MISMATCH` if the view or the delivery log belongs to another
 * event store; then nothing is left running.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, clock, log, signal = new AbortController().signal } = options;
  const engines = await openEngines(config, clock, log);
  const parts = new StartedParts(log);
  parts.add({ name: 'stores', stop: () => engines.close() });
  try {
    const health = new EngineHealth(engines.remote, sinceBoot);
    const operations = await startOperations(options, health, storeDisk(config, engines));
    parts.add({ name: 'operations listener', stop: () => operations.stop() });
    await health.allReached(log, signal);
    await retryWhileUnavailable(() => checkStores(options, engines), { log, signal, component: 'start' });
    signal.throwIfAborted();
    const apiUrl = await startParts({ ...options, signal }, { engines, health, operations, parts });
    return { apiUrl, opsUrl: operations.url, failed: parts.failed, stop: () => parts.stop() };
  } catch (error) {
    await parts.stop().catch(() => undefined); // logged; the caller needs the reason why it did not start
    throw error;
  }
}

/**
 * Checks the stores before anything starts: a view of another store, or one ahead of a restored store, must never be
 * served, and deliveries must not begin with a log that does not belong to the event store.
 */
async function checkStores({ config, roles, clock, log }: ServiceOptions, engines: Engines): Promise<void> {
  await assertNotMoved(config, engines.store());
  await assertNoUnfinishedCopy(engines.coordination());
  // On several machines a process without webhooks may have another key: only its cursors depend on it.
  const withoutSecrets = config.EVENTSTORE_URL !== undefined && !roles.includes('webhooks');
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
  readonly console: Console;
  readonly metrics: Metrics;
  /** Replaced once the parts are started. */
  readiness: () => Promise<Readiness>;
  /** Of the embedded files, if any. */
  readonly disk: ReturnType<typeof storeDisk>;
  stop(): Promise<void>;
}

async function startOperations(
  { config, log, clock }: ServiceOptions,
  health: EngineHealth,
  disk: ReturnType<typeof storeDisk>,
): Promise<Operations> {
  const metrics = createMetrics();
  if (disk !== undefined) addDiskMetrics(metrics.registry, disk);
  const readiness = (): Promise<Readiness> => operations.readiness();
  const hosts = config.FUEL_OPS_HOSTS ?? [];
  const console = new Console({ hosts, environment: config.FUEL_ENVIRONMENT, clock, readiness });
  const { registry } = metrics;
  const server = createOpsServer({ readiness, registry, log, console: console.handle });
  const { host } = config.FUEL_OPS_LISTEN;
  const { port } = await server.listen(config.FUEL_OPS_LISTEN);
  const operations: Operations = {
    url: `http://${urlHost(host)}:${port}`,
    console,
    metrics,
    disk,
    readiness: async () => ({ ready: false, checks: { started: false, ...(await health.state()) } }),
    stop: () => server.stop(),
  };
  return operations;
}

interface Starting {
  readonly engines: Engines;
  readonly health: EngineHealth;
  readonly operations: Operations;
  readonly parts: StartedParts;
}

/** Returns where the API listens. */
async function startParts(
  options: Required<ServiceOptions>,
  { engines, health, operations, parts }: Starting,
): Promise<string | undefined> {
  const { config, roles, log, clock, signal } = options;
  const { metrics } = operations;
  const startedAtMs = clock.now();
  addProjectionMetrics(metrics.registry, () => readProjection(engines));
  const name = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const standing = new Standing();
  const apiThreads = roles.includes('api') ? await furtherApiThreads(config, log) : [];
  const reported = reportProcess({
    ...{ engines, clock, log, id: name, roles, standing },
    directories: ['main', ...(roles.includes('webhooks') ? ['webhooks'] : []), ...apiThreads],
  });
  parts.add({ name: 'process report', stop: () => reported.stop() });
  const live = await startDirectory({
    ...{ engines, parts, clock, log, signal },
    onMoved: (position) => reported.moved('main', position),
  });
  const { shared } = live;
  startFigures(options, { engines, parts, metrics, directory: live.directory });
  const nightly = roles.includes('projector')
    ? startNightlyPart(options, { engines, metrics, name })
    : undefined;
  if (nightly !== undefined) {
    parts.add({ name: 'projector', ...startProjector({ config, holder: name }, metrics) });
    parts.add({ name: 'nightly verification', stop: () => nightly.stop() });
  }
  if (roles.includes('notices')) {
    const stopping = new AbortController();
    parts.addRunning(
      'notices',
      runNotices({ config, engines, clock, log, signal: stopping.signal }),
      stopping,
    );
  }
  let webhooksWaitFor: (() => string | undefined) | undefined;
  if (roles.includes('webhooks')) {
    const onMoved = (position: number): void => reported.moved('webhooks', position);
    const webhooks = startWebhooks({ config, holder: name, directory: shared }, onMoved, metrics);
    parts.add({ name: 'webhooks', failed: webhooks.failed, stop: () => webhooks.stop() });
    webhooksWaitFor = () => webhooks.waitsFor;
  }
  const threads =
    apiThreads.length === 0
      ? undefined
      : new ApiThreads({
          ...{ config, names: apiThreads, standing, directory: shared, metrics },
          onMoved: reported.moved,
        });
  const availability = new Availability({
    live,
    maxAgeMs: config.FUEL_DIRECTORY_MAX_AGE,
    engines: health,
    standing,
    isMember: () => isMember({ standing, engines }, live.directory.position),
    ...(operations.disk && {
      disk: { read: operations.disk, isNeeded: roles.some((role) => role !== 'api') },
    }),
    ...(webhooksWaitFor && { webhooksWaitFor }),
    ...(threads && { areThreadsReady: () => threads.areReady }),
  });
  const api = roles.includes('api')
    ? await startApi({
        ...{ config, engines, availability, metrics, log, clock, threads },
        directory: live.directory,
      })
    : undefined;
  if (api !== undefined) parts.add({ name: 'API', failed: api.failed, stop: () => api.stop() });
  parts.add({ name: 'availability', stop: () => availability.stopping() });

  operations.readiness = () => availability.readiness();
  const lastProof = (): Proof | undefined => nightly?.lastProof();
  const ofProcess = { id: name, roles, startedAtMs, lastProof, readiness: operations.readiness };
  const { directory } = live;
  operations.console.serve(
    consoleParts({ config, clock, engines, metrics, directory, disk: operations.disk, ...ofProcess }),
  );
  log.info({ roles, api: api?.url, ops: operations.url, environment: config.FUEL_ENVIRONMENT }, 'listening');
  return api?.url;
}

/** It belongs to the role that writes the view; the deliveries that it stores are sent by whoever has the webhooks. */
function startNightlyPart(
  { config, log, clock }: ServiceOptions,
  { engines, metrics, name }: { engines: Engines; metrics: Metrics; name: string },
): { stop(): Promise<void>; lastProof(): Proof | undefined } {
  let last: Proof | undefined;
  const nightly = startNightly({
    coordination: engines.coordination(),
    holder: name,
    log,
    verify: (signal) => verifyInThread(config, signal),
    onRepaired(repaired) {
      last = { atMs: clock.now(), ...repaired };
      metrics.agreementRepairs.inc({ what: 'view' }, repaired.view);
      metrics.agreementRepairs.inc({ what: 'deliveries' }, repaired.deliveries);
    },
  });
  return { stop: () => nightly.stop(), lastProof: () => last };
}

/** The figures that are read or measured beside the work: what the stores hold, and this thread's event loop. */
function startFigures(
  { clock, log }: ServiceOptions,
  {
    engines,
    parts,
    metrics,
    directory,
  }: Pick<Starting, 'engines' | 'parts'> & { readonly metrics: Metrics; readonly directory: Directory },
): void {
  const stopping = new AbortController();
  const figures = {
    store: engines.store(),
    view: engines.view(),
    subscriptions: engines.subscriptions(),
    queue: engines.queue(),
    directory,
    clock,
    log,
  };
  parts.addRunning('figures', metrics.shared.run(figures, stopping.signal), stopping);
  const loop = watchLoopDelay((longestMs) => metrics.loopDelay('main', longestMs));
  parts.add({ name: 'loop delay', stop: () => loop.stop() });
}

async function readProjection(engines: Engines): Promise<ProjectionReading> {
  const [checkpoint, head, parked] = await Promise.all([
    engines.view().checkpoint(),
    engines.store().head(),
    countParkedByView(engines.store(), engines.view()),
  ]);
  return { position: checkpoint?.position ?? 0, head, parked };
}
