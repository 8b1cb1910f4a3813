import { createReadStream, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch, type RequestInit } from 'undici';
import { Ledger } from '../../examples/ledger/ledger.ts';
import { sync } from '../../examples/sync-client/sync-client.ts';
import { changeAccount } from '../../src/accounts/change-account.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { Config } from '../../src/base/config/config.ts';
import { ROLES } from '../../src/base/config/settings.ts';
import { createLog } from '../../src/base/log.ts';
import { printable } from '../../src/base/printable.ts';
import { generateTransactions } from '../../src/customers/sample/generator.ts';
import { openingCommands, sampleAccount } from '../../src/customers/sample/sample-directory.ts';
import { formatDateTime } from '../../src/domain/values/date-time.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import { Output } from '../../src/operator/cli/command/output.ts';
import { webhookOptions } from '../../src/operator/cli/commands/webhook-commands.ts';
import { importTransactions } from '../../src/operator/import/import-transactions.ts';
import { issueKey } from '../../src/operator/keys/issue-key.ts';
import { startProcess } from '../../src/operator/serve/start-process.ts';
import { waitUntilApplied } from '../../src/operator/serve/wait-applied.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { type DemoReceiver, demoReceiver, showPush } from './push.ts';

const ACCOUNT_IDS = [7, 8];
const TRANSACTIONS = 20_000;
const DAYS = 90;
const DAY_MS = 86_400_000;
const MONTH_MS = 31 * DAY_MS;
const RATE_LIMIT = 600; // a month of pages at full speed
const AUTHOR = { actor: 'demo', command: 'npm run demo' };

/** The access of a customer. */
interface Customer {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** The certificate to trust, in PEM. */
  readonly certificate: string;
  /** The folder of the ledger. */
  readonly folder: string;
}

/**
 * Shows the service on this machine, from an empty folder to a customer's pull and webhooks. Stays up until Ctrl-C, or
 * ends after the webhooks with `--once`.
 */
async function main(once: boolean): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'fuel-demo-'));
  const receiver = await demoReceiver(folder);
  const config = loadConfig(
    {
      FUEL_DATA_DIR: folder,
      FUEL_WEBHOOK_ALLOW_PRIVATE: 'true',
      FUEL_WEBHOOK_CA: receiver.caFile,
      FUEL_WEBHOOK_RETRY_DELAYS: '2s,4s',
      FUEL_LISTEN: process.env.FUEL_LISTEN ?? '127.0.0.1:0',
      FUEL_OPS_LISTEN: process.env.FUEL_OPS_LISTEN ?? '127.0.0.1:0',
      FUEL_LOG_LEVEL: 'warn',
    },
    'serve',
  );
  const engines = await openEngines(config, systemClock);
  const interrupted = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => resolve());
  });
  const service = await startProcess({
    config,
    roles: ROLES,
    log: createLog(config.FUEL_LOG_LEVEL),
    clock: systemClock,
  });
  try {
    const customer = await prepare(config, engines, { baseUrl: service.apiUrl ?? '', receiver });
    await Promise.race([show(customer), service.failed]);
    await Promise.race([showPush({ engines, receiver, author: AUTHOR, say }), service.failed]);
    if (!once) {
      say(`\nThe operator's console: ${service.opsUrl}/`);
      say(`The service stays up until Ctrl-C, which removes ${folder}.`);
      await Promise.race([interrupted, service.failed]);
    }
  } finally {
    receiver.stop();
    await service.stop();
    await engines.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes two customers with 90 days of transactions. Returns the access of the first one. */
async function prepare(
  config: Config,
  engines: Engines,
  { baseUrl, receiver }: { readonly baseUrl: string; readonly receiver: DemoReceiver },
): Promise<Customer> {
  const endMs = systemClock.now();
  const writer = { store: engines.store(), clock: systemClock, author: AUTHOR };
  const keys: string[] = [];
  for (const account of ACCOUNT_IDS.map(sampleAccount)) {
    const isFirst = keys.length === 0;
    await changeAccount(writer, account.id, openingCommands(account, endMs - DAYS * DAY_MS));
    const { key, webhookSecret } = await issueKey(writer, {
      accountId: account.id,
      environment: 'staging',
      label: 'demo',
      allowList: [],
      rateLimit: RATE_LIMIT,
      driverMobile: true,
      webhook: isFirst ? webhookOptions(config, receiver.url) : null,
    });
    if (webhookSecret !== null) await receiver.start(webhookSecret);
    say(
      `opened account ${account.id}, ${account.name}, with ${account.corporates.length} corporates and a key` +
        (isFirst ? `; its webhook goes to ${receiver.url}, which examples/receiver serves` : ''),
    );
    keys.push(key);
  }
  await importSample(config, engines, endMs);
  const certificate = readFileSync(join(config.FUEL_DATA_DIR, 'tls-cert.pem'), 'utf8');
  const [apiKey = ''] = keys;
  const query = `from=${formatDateTime(endMs - MONTH_MS)}&to=${formatDateTime(endMs)}&limit=2`;
  say('\nTry it yourself:');
  say(`  curl --cacert ${join(config.FUEL_DATA_DIR, 'tls-cert.pem')} -H 'X-API-Key: ${apiKey}' \\`);
  say(`    '${baseUrl}/transactions?${query}'\n`);
  return { baseUrl, apiKey, certificate, folder: config.FUEL_DATA_DIR };
}

async function importSample(config: Config, engines: Engines, endMs: number): Promise<void> {
  const file = join(config.FUEL_DATA_DIR, 'sample.jsonl');
  const sample = generateTransactions({
    seed: 1,
    count: TRANSACTIONS,
    days: DAYS,
    endMs,
    accountIds: ACCOUNT_IDS,
  });
  await writeFile(
    file,
    sample.map((event) => `${JSON.stringify(event)}\n`),
  );
  const out = new Output(false);
  const startedMs = systemClock.now();
  const counts = await importTransactions({
    store: engines.store(),
    input: createReadStream(file),
    author: AUTHOR,
    clock: systemClock,
    onRefused: (line, reason) => say(`line ${line}: ${reason}`),
    onProgress: ({ recorded }) => out.progress(`importing: ${recorded} events`),
    signal: new AbortController().signal,
  });
  await out.end();
  const seconds = ((systemClock.now() - startedMs) / 1000).toFixed(1);
  say(`imported ${file} in ${seconds} s: ${counts.recorded} events recorded, ${counts.refused} refused`);
  const position = await engines.store().head();
  await waitUntilApplied({
    coordination: engines.coordination(),
    view: engines.view(),
    accounts: engines.accounts(),
    position,
  });
}

/** Pulls the last 31 days with examples/sync-client, as a customer would, and prints the counts. */
async function show(customer: Customer): Promise<void> {
  const { baseUrl, apiKey, certificate } = customer;
  const toMs = systemClock.now();
  const dispatcher = new Agent({ connect: { ca: certificate } });
  const out = new Output(false);
  const ledger = new Ledger(join(customer.folder, 'pulled.db'));
  const { pages } = await sync({
    baseUrl,
    apiKey,
    ledger,
    fromMs: toMs - MONTH_MS,
    toMs,
    fetch: ((url: string, init: RequestInit) =>
      fetch(url, { ...init, dispatcher })) as unknown as typeof globalThis.fetch,
    onPage: ({ pages }) => out.progress(`pulling: page ${pages}`),
  });
  await out.end();
  await dispatcher.close();
  const byStatus = new Map<string, number>();
  let newest: string | undefined;
  for (const record of ledger.records()) {
    const { status, created_at } = JSON.parse(record) as { status: string; created_at: string };
    newest ??= created_at;
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
  }
  ledger.close();
  const counts = [...byStatus].map(([status, count]) => `${count} ${status}`).join(', ');
  say(`pulled the last 31 days over HTTPS: ${pages} pages, ${counts}; newest ${newest ?? 'none'}`);
}

function say(line: string): void {
  process.stdout.write(`${printable(line)}\n`);
}

await main(process.argv.includes('--once'));
