import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Directory } from '../../projections/directory.ts';
import { LiveDirectory } from '../access/live-directory.ts';
import { type Engines, openEngines } from '../app.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import { claimDeliveryLog } from '../delivery/delivery-log.ts';
import { assertCheckpoint, storeIdentity } from '../event-store/store-identity.ts';
import { urlHost } from '../http/listen.ts';
import { createOpsServer, type Readiness } from '../http/ops-server.ts';
import type { Log } from '../log.ts';
import { addProjectionMetrics, createMetrics, type Metrics, type ProjectionReading } from '../metrics.ts';
import { assertNoUnfinishedCopy } from '../store-copy/unfinished-copy.ts';
import { VIEW_NAME } from '../transactions-view/projector.ts';
import { Availability } from './availability.ts';
import { EngineHealth } from './engine-health.ts';
import { ProcessReport } from './process-report.ts';
import type { Role } from './roles.ts';
import { startApi } from './start-api.ts';
import { startNotices } from './start-notices.ts';
import { startProjector } from './start-projector.ts';
import { type RunningWebhooks, startWebhooks } from './start-webhooks.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly roles: readonly Role[];
  readonly log: Log;
  readonly clock: Clock;
  /** Ends the wait for engines that are away. */
  readonly signal?: AbortSignal;
}

export interface Service {
  /** Where the API listens; `undefined` without the role `api`. */
  readonly apiUrl: string | undefined;
  readonly opsUrl: string;
  /** Rejects when a part ends with an error; stays pending while all work. */
  readonly failed: Promise<never>;
  /** In order: no longer ready, requests under way answered, parts ended, stores closed. */
  stop(): Promise<void>;
}

/** Something that was started, in the order of starting: it is stopped in the reverse order. */
type Stop = () => Promise<void> | void;

/**
 * Starts the roles of one process: the operations listener first, so that it can be asked what is waited for,
 * then the stores once they can be reached, and the public listener last. Rejects with the signal's reason where
 * that ends the wait, and with `STORE_MISMATCH` where the view belongs to another event store; then nothing is
 * left running.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, clock, log, signal = new AbortController().signal } = options;
  const engines = await openEngines(config, clock, log);
  const stops: Stop[] = [() => engines.close()];
  const stopAll = async (): Promise<void> => {
    for (const stop of stops.splice(0).reverse()) await stop();
  };
  try {
    const health = new EngineHealth(engines.remote, clock);
    const operations = await startOperations(options, health);
    stops.push(() => operations.stop());
    await health.allReached(log, signal);
    const parts = { engines, health, operations, stops };
    return { ...(await startParts(options, parts)), opsUrl: operations.url, stop: stopAll };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

interface Operations {
  readonly url: string;
  readonly metrics: Metrics;
  /** What it is asked for once the parts are there. */
  readiness: () => Promise<Readiness>;
  stop(): Promise<void>;
}

async function startOperations({ config, log }: ServiceOptions, health: EngineHealth): Promise<Operations> {
  const metrics = createMetrics();
  const server = createOpsServer({
    readiness: () => operations.readiness(),
    registry: metrics.registry,
    log,
  });
  const { host } = config.FUEL_OPS_LISTEN;
  const { port } = await server.listen(config.FUEL_OPS_LISTEN);
  const operations: Operations = {
    url: `http://${urlHost(host)}:${port}`,
    metrics,
    readiness: async () => ({ ready: false, checks: { started: false, ...(await health.state()) } }),
    stop: () => server.stop(),
  };
  return operations;
}

interface Parts {
  readonly engines: Engines;
  readonly health: EngineHealth;
  readonly operations: Operations;
  readonly stops: Stop[];
}

async function startParts(
  options: ServiceOptions,
  { engines, health, operations, stops }: Parts,
): Promise<Omit<Service, 'stop' | 'opsUrl'>> {
  const { config, roles, log, clock } = options;
  const { metrics } = operations;
  await assertNoUnfinishedCopy(engines.coordination());
  await checkView(engines, clock);
  addProjectionMetrics(metrics.registry, () => readProjection(engines));
  const name = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const report = new ProcessReport({ coordination: engines.coordination(), clock, log, id: name, roles });
  stops.push(() => report.stop());

  const moved = positionOfAll(roles.includes('webhooks') ? ['main', 'webhooks'] : ['main'], (position) =>
    report.directoryMoved(position),
  );

  const following = new AbortController();
  const live = new LiveDirectory({
    store: engines.store(),
    directory: new Directory(),
    snapshots: engines.snapshots(),
    saving: { coordination: engines.coordination(), holder: name },
    clock,
    log,
    signal: following.signal,
    onMoved: (position) => moved('main', position),
  });
  const directoryEnded = live.run();
  stops.push(async () => {
    following.abort();
    await directoryEnded.catch(() => undefined); // reported through `failed`
  });
  const failures: Promise<unknown>[] = [directoryEnded.then(() => new Promise<never>(() => undefined))];

  if (roles.includes('projector')) {
    const projector = startProjector({ config, holder: name });
    stops.push(() => projector.stop());
    failures.push(projector.failed);
  }
  if (roles.includes('notices')) {
    const notices = startNotices({ config, engines, clock, log });
    stops.push(() => notices.stop());
    failures.push(notices.failed);
  }
  const webhooks = roles.includes('webhooks')
    ? await startDeliveries(options, engines, {
        holder: name,
        onMoved: (position) => moved('webhooks', position),
      })
    : undefined;
  if (webhooks !== undefined) {
    stops.push(() => webhooks.stop());
    failures.push(webhooks.failed);
  }
  const availability = new Availability({
    live,
    maxAgeMs: config.FUEL_DIRECTORY_MAX_AGE,
    engines: health,
    ...(webhooks && { isSubscribed: () => webhooks.isConnected }),
  });
  const api = roles.includes('api')
    ? await startApi({ config, engines, directory: live.directory, availability, metrics, log, clock })
    : undefined;
  if (api !== undefined) stops.push(() => api.stop());
  stops.push(() => availability.stopping());

  operations.readiness = () => availability.readiness();
  log.info({ roles, api: api?.url, ops: operations.url, environment: config.FUEL_ENVIRONMENT }, 'listening');
  return { apiUrl: api?.url, failed: Promise.race(failures) as Promise<never> };
}

/** Deliveries must not begin for a moment with a delivery log that does not belong to the event store. */
async function startDeliveries(
  { config, clock }: ServiceOptions,
  engines: Engines,
  thread: { readonly holder: string; readonly onMoved: (position: number) => void },
): Promise<RunningWebhooks> {
  await claimDeliveryLog(engines.store(), engines.queue(), clock);
  return startWebhooks({ config, holder: thread.holder }, thread.onMoved);
}

/** How far all directories of this process are: as far as the one that is behind the others. */
function positionOfAll<Name extends string>(
  names: readonly Name[],
  report: (position: number) => void,
): (name: Name, position: number) => void {
  const positions = new Map<Name, number>();
  return (name, position) => {
    positions.set(name, position);
    if (positions.size === names.length) report(Math.min(...positions.values()));
  };
}

/** A view of another store, or one ahead of a restored store, must not be served for a moment. */
async function checkView(engines: Engines, clock: Clock): Promise<void> {
  const storeId = await storeIdentity(engines.store(), clock);
  const checkpoint = await engines.view().checkpoint();
  if (checkpoint === undefined) return;
  await assertCheckpoint(checkpoint, { store: engines.store(), storeId }, VIEW_NAME);
}

async function readProjection(engines: Engines): Promise<ProjectionReading> {
  const [checkpoint, head, parked] = await Promise.all([
    engines.view().checkpoint(),
    engines.store().head(),
    engines.view().countParked(),
  ]);
  return { position: checkpoint?.position ?? 0, head, setAside: parked };
}
