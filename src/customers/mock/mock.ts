import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { changeAccount } from '../../accounts/change-account.ts';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { FuelError } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import type { TransactionEvent } from '../../domain/transaction-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { loadConfig, openEngines } from '../../engines/engines.ts';
import { importTransactions } from '../../operator/import/import-transactions.ts';
import { startProcess } from '../../operator/serve/start-process.ts';
import { waitUntilApplied } from '../../operator/serve/wait-applied.ts';
import { configuredPresigner } from '../../pull/images/presign.ts';
import type { Engines } from '../../service/engines/engines.ts';
import type { Service } from '../../service/service.ts';
import { openingCommands } from '../sample/provision.ts';
import { type ControlServer, type Controls, startControlServer } from './control-server.ts';
import { type MockData, mockData } from './mock-data.ts';
import { type Pushed, planWebhooks, transactionsFor } from './mock-webhooks.ts';
import { createMockSender } from './send-mock.ts';

const HOST = '127.0.0.1';
const AUTHOR = { actor: 'mock', command: 'fuel mock' };
const RATE_LIMIT = 60; // that of every key unless agreed otherwise

export interface Mock {
  readonly data: MockData;
  readonly baseUrl: string;
  /** PEM file of the certificate that the API has. */
  readonly caFile: string;
  /** Where webhooks and voids are asked for. */
  readonly controlUrl: string;
  /** Rejects when a part of it ends with an error. */
  readonly failed: Promise<never>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/**
 * The API on generated data, with its store in a temporary folder, and a second listener that sends webhooks on demand.
 * It takes no settings from the environment. The second listener has the port after `port`, or any where that is 0.
 * Rejects with `REFUSED` where a port is taken.
 */
export async function startMock(options: { readonly seed: number; readonly port: number }): Promise<Mock> {
  const folder = await mkdtemp(join(tmpdir(), 'fuel-mock-'));
  const stops: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })];
  const stop = async (): Promise<void> => {
    for (const end of stops.splice(0).toReversed()) await end();
  };
  try {
    const config = configOf(folder, options.port);
    const data = mockData(options.seed);
    // First, so that a port that is taken is noticed before the work.
    const controls = new MockControls(config, data);
    const port = options.port === 0 ? 0 : options.port + 1;
    const control: ControlServer = await startControlServer(controls, port);
    stops.push(() => control.stop());
    const service = await startProcess({
      config,
      roles: ['api', 'projector'],
      log: silentLog,
      clock: systemClock,
    });
    stops.push(() => service.stop());
    const engines = await openEngines(config, systemClock);
    stops.push(() => engines.close());
    stops.push(() => controls.close());
    await fill(engines, data);
    controls.open(engines);
    return { data, ...placesOf(config, service), controlUrl: control.url, failed: service.failed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function configOf(folder: string, port: number): Config {
  const settings = {
    FUEL_DATA_DIR: folder,
    FUEL_LISTEN: `${HOST}:${port}`,
    FUEL_OPS_LISTEN: `${HOST}:0`,
    FUEL_API_THREADS: '1',
    FUEL_LOG_LEVEL: 'silent',
  };
  return loadConfig(settings, 'serve');
}

function placesOf(config: Config, service: Service): Pick<Mock, 'baseUrl' | 'caFile'> {
  return { baseUrl: service.apiUrl ?? '', caFile: join(config.FUEL_DATA_DIR, 'tls-cert.pem') };
}

async function fill(engines: Engines, { account, prefix, secretSha256, events }: MockData): Promise<void> {
  const writer = { store: engines.store(), clock: systemClock, author: AUTHOR };
  await changeAccount(writer, account.id, [
    ...openingCommands(account, 0),
    {
      type: 'IssueKey',
      ...{ accountId: account.id, prefix, secretSha256, environment: 'staging', label: 'mock' },
      ...{ allowList: [], rateLimit: RATE_LIMIT, driverMobile: true },
    },
  ]);
  await record(engines, events);
}

/** Records the events; resolves once the API shows them. */
async function record(engines: Engines, events: Iterable<TransactionEvent>): Promise<void> {
  await importTransactions({
    store: engines.store(),
    input: linesOf(events),
    author: AUTHOR,
    clock: systemClock,
    onRefused: (_, reason) => {
      throw new FuelError('REFUSED', reason);
    },
    onProgress: () => undefined,
    signal: new AbortController().signal,
  });
  const position = await engines.store().head();
  const [coordination, view] = [engines.coordination(), engines.view()];
  await waitUntilApplied({ coordination, view, position });
}

async function* linesOf(events: Iterable<TransactionEvent>): AsyncGenerator<Buffer> {
  for (const event of events) yield Buffer.from(`${JSON.stringify(event)}\n`);
}

class MockControls implements Controls {
  readonly #config: Config;
  readonly #data: MockData;
  readonly #sender = createMockSender();
  #shownIds: readonly number[];
  #engines: Engines | undefined;
  #next = 0;

  constructor(config: Config, data: MockData) {
    this.#config = config;
    this.#data = data;
    this.#shownIds = data.shownIds;
  }

  /** Takes requests from now on. */
  open(engines: Engines): void {
    this.#engines = engines;
  }

  async send({ kind, url, transactionId }: Parameters<Controls['send']>[0]) {
    const count = transactionsFor(kind);
    if (transactionId !== undefined && count !== 1) {
      throw new FuelError('USAGE', `transaction: ${kind} takes none`);
    }
    const ids = transactionId === undefined ? this.#nextIds(count) : [transactionId];
    const transactions: Pushed[] = [];
    for (const id of ids) transactions.push(await this.#find(id));
    const { prefix, webhookSecret: secret } = this.#data;
    const presigner = configuredPresigner(this.#config);
    const terms = { url, prefix, secret, presigner, nowMs: systemClock.now() };
    const sent = [];
    for (const webhook of planWebhooks(kind, transactions, terms))
      sent.push(await this.#sender.send(webhook));
    return sent;
  }

  async void(transactionId: number): Promise<void> {
    const engines = this.#opened();
    await this.#find(transactionId);
    const voided_at = formatDateTime(systemClock.now());
    const data = {
      transaction_id: transactionId,
      account_id: this.#data.account.id,
      voided_at,
      reason: 'asked for',
    };
    await record(engines, [{ type: 'TransactionVoided', data }]);
    this.#shownIds = this.#shownIds.filter((id) => id !== transactionId);
  }

  close(): Promise<void> {
    return this.#sender.close();
  }

  #opened(): Engines {
    if (this.#engines === undefined) throw new FuelError('REFUSED', 'the mock is still starting: try again');
    return this.#engines;
  }

  /** The oldest ones first, then from the start again. */
  #nextIds(count: number): number[] {
    const ids = Array.from(
      { length: count },
      (_, index) => this.#shownIds[(this.#next + index) % this.#shownIds.length],
    );
    this.#next += count;
    return ids.filter((id) => id !== undefined);
  }

  async #find(id: number): Promise<Pushed> {
    const row = (await this.#opened().view().find([id])).get(id)?.shown;
    if (row === undefined || row === null) {
      throw new FuelError('REFUSED', `transaction: ${id} is not shown; pull to see which are`);
    }
    const { status, createdAtMs } = row;
    return { id, status, createdAtMs, record: row };
  }
}
