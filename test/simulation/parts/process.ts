import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';
import { systemClock } from '../../../src/base/clock.ts';
import type { Config } from '../../../src/base/config/config.ts';
import type { Role } from '../../../src/base/config/settings.ts';
import type { Log } from '../../../src/base/log.ts';
import { THREAD_ENTRY } from '../../../src/operator/serve/jobs.ts';
import { operatorSide } from '../../../src/operator/serve/operator-side.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { type Service, startService } from '../../../src/service/service.ts';
import type { JobData } from '../../../src/service/threads/job.ts';
import { type Owner, owners, type Timeline } from '../core/timeline.ts';
import { type Gate, openStores, type Stores } from '../stores/stores.ts';
import { everyDay } from './calendar.ts';
import { SimulatedThread, type ThreadParts } from './thread.ts';

interface ProcessOptions {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly config: Config;
  readonly timeline: Timeline;
  readonly jobs: ThreadParts['jobs'];
  readonly stores: Stores;
  readonly gate: (process: SimulatedProcess) => Gate;
  readonly log: (process: SimulatedProcess) => Log;
  /** Called if it ends by itself, with an error. */
  readonly onFailed: (process: SimulatedProcess, error: unknown) => void;
  readonly clockMs: number;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** A request: its target and its headers. */
interface Request {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The address of the proxy that ends TLS. */
export const PROXY = '198.51.100.7';

/** One process of the service with its roles, as `startService` makes it, on simulated stores, threads and listeners. */
export class SimulatedProcess implements Owner {
  readonly name: string;
  readonly isService = true;
  isAlive = true;
  pausedUntilMs = 0;
  clockMs: number;
  readonly options: ProcessOptions;
  readonly #opened: { end(): void }[] = [];
  readonly #servers = new Map<Server, number>();
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<undefined>();
  #service: Promise<Service> | undefined;

  constructor(options: ProcessOptions) {
    this.options = options;
    this.name = options.name;
    this.clockMs = options.clockMs;
  }

  start(): void {
    const { config, roles, timeline } = this.options;
    const failed = (error: unknown): void => {
      if (this.isAlive && !this.#stopping.signal.aborted) this.options.onFailed(this, error);
    };
    this.#service = owners.run(this, () =>
      startService({
        config,
        roles,
        log: this.options.log(this),
        clock: systemClock,
        openEngines: async () => this.#openEngines(),
        entry: THREAD_ENTRY,
        operator: operatorSide(config, systemClock, everyDay(timeline)),
        signal: this.#stopping.signal,
      }),
    );
    this.#service.then((service) => service.failed.catch(failed), failed);
  }

  /** Kills it like kill -9: nothing under way continues. */
  kill(): void {
    this.isAlive = false;
    this.#servers.clear();
    this.#ended.resolve(undefined);
    for (const each of this.#opened) each.end();
  }

  /** Stops it like a deployment. Resolves when it has ended. */
  stop(): Promise<void> {
    return owners.run(this, async () => {
      this.#stopping.abort();
      const service = await this.#service?.catch(() => undefined);
      await service?.stop();
      this.kill();
    });
  }

  /** Replaces `world.thread`. */
  thread(data: JobData): SimulatedThread {
    const { timeline, jobs } = this.options;
    const createLog = (): Log => this.options.log(this);
    return new SimulatedThread(
      { timeline, process: this, jobs, openEngines: () => this.#openEngines(), createLog },
      data,
    );
  }

  /** Replaces `world.listen`. */
  listen(server: Server, port: number, listening: () => void): void {
    this.#servers.set(server, port);
    const close = server.close.bind(server);
    const address = () => ({ address: '127.0.0.1', family: 'IPv4', port });
    Object.assign(server, {
      address,
      close: (done: () => void) => {
        this.#servers.delete(server);
        return close(done);
      },
    });
    this.options.timeline.set(0, listening);
  }

  get isListening(): boolean {
    return this.#listener('public') !== undefined;
  }

  /** Makes a request; `undefined` if it does not listen, or the process ends before the answer. */
  pull(path: string, key: string): Promise<Answer | undefined> {
    const headers = { 'x-api-key': key, 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https' };
    return this.#ask(this.#listener('public'), { path, headers });
  }

  /** Returns what is missing for readiness; `undefined` if nothing is. */
  async missing(): Promise<string | undefined> {
    const answer = await this.#ask(this.#listener('ops'), { path: '/readyz', headers: {} });
    return answer?.status === 200 ? undefined : (answer?.text ?? 'it does not answer');
  }

  async #ask(server: Server | undefined, request: Request): Promise<Answer | undefined> {
    if (!this.isAlive || server === undefined) return undefined;
    return Promise.race([owners.run(this, () => ask(server, request)), this.#ended.promise]);
  }

  #listener(kind: 'public' | 'ops'): Server | undefined {
    const { port: opsPort } = this.options.config.FUEL_OPS_LISTEN;
    const isOfKind = ([, port]: [Server, number]): boolean => (port === opsPort) === (kind === 'ops');
    return [...this.#servers].find(isOfKind)?.[0];
  }

  #openEngines(): Engines {
    const { stores, gate } = this.options;
    const within = (run: () => void): void => {
      if (this.isAlive) owners.run(this, run);
    };
    const opened = openStores(stores, gate(this), within);
    this.#opened.push(opened);
    return opened.engines;
  }
}

/** A connection of the proxy, with one request. */
class Wire extends Duplex {
  static #ports = 0;
  readonly remoteAddress = PROXY;
  readonly remotePort = ++Wire.#ports;

  setTimeout(): this {
    return this;
  }

  destroySoon(): void {}

  override _read(): void {}

  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done();
  }
}

function ask(server: Server, { path, headers }: Request): Promise<Answer> {
  const wire = new Wire();
  const message = new IncomingMessage(wire as never);
  const version = { httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 };
  Object.assign(message, { method: 'GET', url: path, ...version });
  const all = { host: 'api.fuel.example', ...headers };
  Object.assign(message.headers, all);
  message.rawHeaders.push(...Object.entries(all).flat());
  const response = new ServerResponse(message);
  response.assignSocket(wire as never);
  server.emit('connection', wire);
  return new Promise((resolve) => {
    Object.assign(response, {
      end(body: unknown) {
        const text = typeof body === 'string' ? body : Buffer.isBuffer(body) ? body.toString('utf8') : '';
        response.emit('finish');
        response.emit('close');
        response.detachSocket(wire as never);
        wire.destroy();
        resolve({ status: response.statusCode, text });
        return response;
      },
    });
    server.emit('request', message, response);
  });
}
