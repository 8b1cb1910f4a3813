import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';
import { Registry } from 'prom-client';
import { openMasterKeys } from '../../../src/accounts/master-key.ts';
import { bindStore } from '../../../src/accounts/store-binding.ts';
import { systemClock } from '../../../src/base/clock.ts';
import type { Config, Role } from '../../../src/base/config/config.ts';
import type { Log } from '../../../src/base/log.ts';
import { retryWhileUnavailable } from '../../../src/base/retry.ts';
import { assertCheckpoint } from '../../../src/event-store/store-identity.ts';
import { THREAD_ENTRY } from '../../../src/operator/serve/threads.ts';
import { createApi } from '../../../src/pull/app.ts';
import { createCursors } from '../../../src/pull/cursor.ts';
import { createMemoryRateWindows } from '../../../src/pull/edge/rate-windows/memory.ts';
import { configuredPresigner } from '../../../src/pull/images/presign.ts';
import { RequestRecorder } from '../../../src/pull/request-journal.ts';
import { VIEW_NAME } from '../../../src/pull/view/projector.ts';
import { claimDeliveryLog } from '../../../src/push/delivery-log.ts';
import type { Mailer } from '../../../src/push/notices/mailer.ts';
import { runNotifier } from '../../../src/push/notices/notifier.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { accessState, Standing, whenReady } from '../../../src/service/ops/standing.ts';
import { workMetrics } from '../../../src/service/ops/work-metrics.ts';
import { ProcessReport } from '../../../src/service/process-report.ts';
import { projector } from '../../../src/service/roles/projector.ts';
import { webhooks } from '../../../src/service/roles/webhooks.ts';
import { startDirectory } from '../../../src/service/start-directory.ts';
import { running, StartedParts } from '../../../src/service/started-parts.ts';
import type { FromThread, JobContext } from '../../../src/service/threads/job.ts';
import { type Owner, owners } from '../core/timeline.ts';
import type { Gate, Stores } from '../stores/stores.ts';
import { openStores } from '../stores/stores.ts';

export interface ProcessOptions {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly config: Config;
  readonly stores: Stores;
  readonly gate: (process: SimulatedProcess) => Gate;
  readonly mailer: (process: SimulatedProcess) => Mailer;
  readonly log: (process: SimulatedProcess) => Log;
  /** Called where it ends by itself, with an error. */
  readonly onFailed: (process: SimulatedProcess, error: unknown) => void;
  readonly clockMs: number;
}

export interface PulledAnswer {
  readonly status: number;
  readonly text: string;
}

/** Metrics are counted by nobody here, and making them takes longer than a start. */
const metrics = workMetrics(new Registry());
const mainMetrics = createMetrics();

/** One process of the service with its roles, composed as `startService` does, without threads and listeners. */
export class SimulatedProcess implements Owner {
  readonly name: string;
  readonly isService = true;
  isAlive = true;
  pausedUntilMs = 0;
  clockMs: number;
  readonly options: ProcessOptions;
  readonly #opened: ReturnType<typeof openStores>;
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<undefined>();
  #parts: StartedParts | undefined;
  #api: RequestListener | undefined;

  constructor(options: ProcessOptions) {
    this.options = options;
    this.name = options.name;
    this.clockMs = options.clockMs;
    const within = (run: () => void): void => {
      if (this.isAlive) owners.run(this, run);
    };
    this.#opened = openStores(options.stores, options.config, options.gate(this), within);
  }

  start(): void {
    owners.run(this, () => {
      this.#run().catch((error: unknown) => {
        if (this.isAlive && !this.#stopping.signal.aborted) this.options.onFailed(this, error);
      });
    });
  }

  /** As kill -9: nothing that was under way goes on. */
  kill(): void {
    this.isAlive = false;
    this.#ended.resolve(undefined);
    this.#opened.end();
  }

  /** As a deployment stops it. Resolves when it has ended. */
  stop(): Promise<void> {
    return owners.run(this, async () => {
      this.#stopping.abort();
      this.#api = undefined;
      await this.#parts?.stop();
      this.kill();
    });
  }

  get isListening(): boolean {
    return this.isAlive && this.#api !== undefined;
  }

  /** `undefined` where it does not listen, or ends before it answers. */
  async pull(path: string, key: string, address = '203.0.113.9'): Promise<PulledAnswer | undefined> {
    const api = this.#api;
    if (!this.isAlive || api === undefined) return undefined;
    const answer = owners.run(this, () => request(api, { path, key, address }));
    return Promise.race([answer, this.#ended.promise]);
  }

  async #run(): Promise<void> {
    const { config, roles, name } = this.options;
    const engines = this.#opened.engines;
    const log = this.options.log(this);
    const { signal } = this.#stopping;
    await retryWhileUnavailable(() => checkStores(config, roles, engines), {
      log,
      signal,
      component: 'start',
    });
    signal.throwIfAborted();
    const parts = new StartedParts(log);
    this.#parts = parts;
    const [store, standing, clock] = [engines.store(), new Standing(), systemClock];
    const has = (role: Role): boolean => roles.includes(role);
    const directories = ['main', ...(has('webhooks') ? ['webhooks'] : [])];
    const coordination = engines.coordination();
    const report = parts.add(
      'process report',
      new ProcessReport({ coordination, store, clock, log, id: name, roles, directories, standing }),
    );
    parts.failed.catch((error: unknown) => {
      if (this.isAlive && !signal.aborted) this.options.onFailed(this, error);
    });
    const onMoved = (position: number): void => report.moved('main', position);
    const live = await startDirectory({ engines, parts, clock, log, signal, onMoved });
    const context = (stopping: AbortSignal): JobContext => ({
      ...{ entry: THREAD_ENTRY, config, holder: name, name, engines, clock, log, metrics, signal: stopping },
      report: (message: FromThread) => {
        if (message.kind === 'moved') report.moved('webhooks', message.position);
      },
      onTold: () => undefined,
    });
    if (has('projector'))
      parts.add(
        'projector',
        asked((stopping) => projector(context(stopping), undefined)),
      );
    if (has('notices')) {
      const mailer = this.options.mailer(this);
      const operatorEmail = 'operator@fuel.example';
      const terms = { store, subscriptions: engines.subscriptions(), mailer, operatorEmail, clock, log };
      const work = (stopping: AbortSignal) =>
        runNotifier({ ...terms, givenUp: { inc: () => undefined }, signal: stopping });
      parts.add('notices', asked(work));
    }
    if (has('webhooks')) {
      const directory = live.shared;
      parts.add(
        'webhooks',
        asked((stopping) => webhooks(context(stopping), { directory })),
      );
    }
    if (!has('api')) return;
    const conditions = { live, maxAgeMs: config.FUEL_DIRECTORY_MAX_AGE, store, standing };
    await Promise.race([whenReady(conditions, signal), parts.failed]);
    signal.throwIfAborted();
    const journal = engines.requests();
    const requests = new RequestRecorder({ journal, clock, log, dropped: { inc: () => undefined } });
    parts.add('requests', { stop: () => requests.stop() });
    this.#api = createApi({
      ...{ log, clock, requests, directory: live.directory, proxies: [], tlsTerminated: false },
      metrics: mainMetrics,
      availability: () => accessState(conditions),
      environment: config.FUEL_ENVIRONMENT,
      edge: {
        kind: 'embedded',
        windows: { keys: engines.rateWindows(), unproven: createMemoryRateWindows({ maxIds: 100 }) },
      },
      view: engines.view(),
      presigner: configuredPresigner(config),
      cursors: createCursors(openMasterKeys(config).deriveKeys('cursors')),
    });
  }
}

/** A part that ends only when it is asked to, as `startJob` sees a thread. */
function asked(work: (signal: AbortSignal) => Promise<void>) {
  const stopping = new AbortController();
  return running(async (signal) => {
    await work(signal);
    if (!signal.aborted) throw new Error('a part ended without being asked');
  }, stopping);
}

async function checkStores(config: Config, roles: readonly Role[], engines: Engines): Promise<void> {
  const withoutSecrets = !roles.includes('webhooks');
  const storeId = await bindStore(engines.store(), config, { clock: systemClock, withoutSecrets });
  const checkpoint = await engines.view().checkpoint();
  if (checkpoint !== undefined)
    await assertCheckpoint(checkpoint, { store: engines.store(), storeId }, VIEW_NAME);
  if (roles.includes('webhooks')) await claimDeliveryLog(engines.store(), engines.queue(), systemClock);
}

class Wire extends Duplex {
  readonly encrypted = true;
  readonly remoteAddress: string;

  constructor(address: string) {
    super();
    this.remoteAddress = address;
  }

  setTimeout(): this {
    return this;
  }

  override _read(): void {}

  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done();
  }
}

function request(
  api: RequestListener,
  { path, key, address }: { path: string; key: string; address: string },
): Promise<PulledAnswer> {
  const wire = new Wire(address) as never;
  const message = new IncomingMessage(wire);
  Object.assign(message, {
    method: 'GET',
    url: path,
    httpVersion: '1.1',
    httpVersionMajor: 1,
    httpVersionMinor: 1,
  });
  Object.assign(message.headers, { host: 'api.fuel.example', 'x-api-key': key });
  const response = new ServerResponse(message);
  return new Promise((resolve) => {
    Object.assign(response, {
      end(body: unknown) {
        const text = typeof body === 'string' ? body : Buffer.isBuffer(body) ? body.toString('utf8') : '';
        response.emit('finish');
        resolve({ status: response.statusCode, text });
        return response;
      },
    });
    api(message, response);
  });
}
