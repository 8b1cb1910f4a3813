import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import { systemClock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { SerialWork } from '../../base/serial-work.ts';
import type { TransactionEvent } from '../../domain/transaction-events.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { loadConfig, openEngines } from '../../engines/engines.ts';
import { importTransactions } from '../../operator/import/import-transactions.ts';
import { startProcess } from '../../operator/serve/start-process.ts';
import { waitUntilApplied } from '../../operator/serve/wait-applied.ts';
import { configuredPresigner, type Presigner } from '../../pull/images/presign.ts';
import type { Engines } from '../../service/engines/engines.ts';
import { openingCommands } from '../sample/sample-directory.ts';
import { type Controls, startControlServer } from './control-server.ts';
import { recordAnswer } from './mock-answers.ts';
import { type MockData, mockData } from './mock-data.ts';
import { KINDS, type WebhookKind } from './mock-webhooks.ts';
import { type SentWebhook, sendWebhook, useUp } from './send-mock.ts';

const HOST = '127.0.0.1';
const AUTHOR = { actor: 'mock', command: 'fuel mock' };

export interface MockOptions {
  readonly seed: number;
  /** Where the times of its transactions end. */
  readonly toMs: number;
  /** Requests in 60 s that its key has. */
  readonly rateLimit: number;
}

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
export async function startMock({
  port,
  ...options
}: MockOptions & { readonly port: number }): Promise<Mock> {
  const parts = new AsyncDisposableStack();
  const stop = () => parts.disposeAsync();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'fuel-mock-'));
    parts.defer(() => rm(folder, { recursive: true, force: true }));
    const settings = {
      FUEL_DATA_DIR: folder,
      FUEL_LISTEN: `${HOST}:${port}`,
      FUEL_OPS_LISTEN: `${HOST}:0`,
      FUEL_LOG_LEVEL: 'silent',
    };
    const config = loadConfig(settings, 'serve');
    const service = await startProcess({
      ...{ config, roles: ['api', 'projector'], log: silentLog, clock: systemClock },
    });
    parts.defer(() => service.stop());
    const engines = await openEngines(config, systemClock);
    parts.defer(() => engines.close());
    const data = mockData(options.seed, options.toMs);
    await fill(engines, data, options);
    const { apiUrl: baseUrl = '', failed } = service;
    const presigner = configuredPresigner(config);
    const stopping = new AbortController();
    const { signal } = stopping;
    const controls = createControls({ ...options, engines, data, presigner, baseUrl, signal });
    const control = await startControlServer(controls, port === 0 ? 0 : port + 1);
    parts.defer(() => control.stop());
    parts.defer(() => stopping.abort());
    const caFile = join(folder, 'tls-cert.pem');
    return { data, baseUrl, caFile, controlUrl: control.url, failed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function fill(
  engines: Engines,
  { account, prefix, secretSha256, events }: MockData,
  { rateLimit }: MockOptions,
): Promise<void> {
  await changeAccount(writerOf(engines), account.id, [
    ...openingCommands(account, 0),
    {
      type: 'IssueKey',
      ...{ accountId: account.id, prefix, secretSha256, environment: 'staging', label: 'mock' },
      ...{ allowList: [], rateLimit, driverMobile: true },
    },
  ]);
  await record(engines, events);
}

function writerOf(engines: Engines): AccountWriter {
  return { store: engines.store(), clock: systemClock, author: AUTHOR };
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
  await applied(engines);
}

async function applied(engines: Engines): Promise<void> {
  const position = await engines.store().head();
  const [coordination, view] = [engines.coordination(), engines.view()];
  await waitUntilApplied({ coordination, view, position });
}

async function* linesOf(events: Iterable<TransactionEvent>): AsyncGenerator<Buffer> {
  for (const event of events) yield Buffer.from(`${JSON.stringify(event)}\n`);
}

function createControls({
  engines,
  data,
  presigner,
  baseUrl,
  rateLimit,
  signal,
}: MockOptions & {
  readonly engines: Engines;
  readonly data: MockData;
  readonly presigner: Presigner;
  readonly baseUrl: string;
  /** Ends the waits between attempts. */
  readonly signal: AbortSignal;
}): Controls {
  const { account, prefix, webhookSecret: secret } = data;
  const answers = new SerialWork();
  /** Those to send next first: the oldest, then from the start again. */
  let queue: readonly number[] = data.shownIds;
  const nextIds = (count: number): number[] => {
    const ids = queue.slice(0, count);
    queue = [...queue.slice(count), ...ids];
    return ids;
  };
  const find = async (id: number) => {
    const row = (await engines.view().find([id])).get(id)?.shown;
    if (row) return row;
    throw new FuelError('REFUSED', `transaction: ${id} is not shown; pull to see which are`);
  };
  return {
    async send({ kind, url, transaction }) {
      const { transactions: count, plan, retryDelaysMs = [] }: WebhookKind = KINDS[kind];
      if (transaction !== undefined && count !== 1) {
        throw new FuelError('USAGE', `transaction: ${kind} takes none`);
      }
      const ids = transaction === undefined ? nextIds(count) : [transaction];
      const rows = await Promise.all(ids.map(find));
      const sent: SentWebhook[] = [];
      for (const waitMs of [0, ...retryDelaysMs]) {
        await sleep(waitMs, undefined, { signal });
        for (const webhook of plan(rows, { url, prefix, secret, presigner, nowMs: systemClock.now() })) {
          sent.push(await sendWebhook(webhook));
        }
        if (sent.at(-1)?.as_expected) break;
      }
      return sent;
    },
    async void(transaction_id) {
      await find(transaction_id);
      const voided_at = formatDateTime(systemClock.now());
      const voided = { transaction_id, account_id: account.id, voided_at, reason: 'asked for' };
      await record(engines, [{ type: 'TransactionVoided', data: voided }]);
      queue = queue.filter((id) => id !== transaction_id);
    },
    answer: (kind) =>
      answers.run(async () => {
        await recordAnswer(kind, { accountId: account.id, prefix, rateLimit }, writerOf(engines));
        await applied(engines);
        if (kind === '429') await useUp(`${baseUrl}/transactions`, data.key);
      }),
  };
}
