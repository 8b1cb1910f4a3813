import { mkdirSync } from 'node:fs';
import { openMasterKeys } from '../../src/accounts/master-key.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { Config } from '../../src/base/config/config.ts';
import { generateTransactions } from '../../src/customers/sample/generator.ts';
import type { TransactionEvent } from '../../src/domain/transaction-events.ts';
import { formatDateTime } from '../../src/domain/values/date-time.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import { storeIdentity } from '../../src/event-store/store-identity.ts';
import { setWebhook } from '../../src/operator/keys/set-webhook.ts';
import { deliveryId } from '../../src/push/message/envelope.ts';
import { createNameLookup } from '../../src/push/sender/name-lookup.ts';
import { resolveName } from '../../src/push/targets/resolve-name.ts';
import { parseKey } from '../../test/support/accounts/parse-key.ts';
import { provision } from './provision.ts';
import type { Receivers } from './receivers.ts';

const FIRST_ACCOUNT = 7;
const FIRST_TRANSACTION = 1_000_001;
const RECORDINGS = new Set<string>(['TransactionConfirmed', 'ExternalTransactionRecorded']);

/** One account with one key, whose webhook leads to the receiver with that number. */
export interface WebhookCustomer {
  readonly accountId: number;
  readonly prefix: string;
  readonly key: string;
  readonly receiver: number;
}

/** One transaction that is owed exactly one delivery. */
export interface WebhookTransaction {
  readonly event: TransactionEvent;
  readonly id: number;
  readonly deliveryId: string;
  readonly receiver: number;
}

export interface WebhookSetUp {
  readonly config: Config;
  /** The same settings for another process. */
  readonly env: Readonly<Record<string, string>>;
  /** One key of each customer, for the pull API. */
  readonly keys: readonly string[];
  /** Draws new transactions, created now, spread evenly over all customers. */
  next(count: number): WebhookTransaction[];
}

export interface WebhookPlace {
  /** The settings of the engines, unless they are embedded. */
  readonly env?: Readonly<Record<string, string>>;
  /** The first ids to use, if the engines may contain events of others. */
  readonly firstAccount?: number;
  readonly firstTransaction?: number;
}

/** Opens one account with access, a key and a webhook for each receiver, in a new data directory. */
export async function setUpWebhooks(
  dataDir: string,
  receivers: Pick<Receivers, 'urls' | 'caFile'>,
  place: WebhookPlace = {},
): Promise<WebhookSetUp> {
  const { firstAccount = FIRST_ACCOUNT, firstTransaction = FIRST_TRANSACTION } = place;
  const env = {
    ...place.env,
    FUEL_DATA_DIR: dataDir,
    FUEL_LISTEN: '127.0.0.1:0',
    FUEL_STOP_DELAY: '0s',
    FUEL_OPS_LISTEN: '127.0.0.1:0',
    FUEL_WEBHOOK_ALLOW_PRIVATE: 'true',
    FUEL_WEBHOOK_CA: receivers.caFile,
  };
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  // If the service runs in this process, a log line for each delivery would appear between the figures.
  const config = loadConfig({ ...env, FUEL_LOG_LEVEL: 'warn' }, 'serve');
  const customers = await openCustomers(config, receivers, firstAccount);
  let firstId = firstTransaction;
  return {
    config,
    env,
    keys: customers.map(({ key }) => key),
    next(count) {
      const transactions = drawTransactions(customers, { count, firstId });
      firstId += count;
      return transactions;
    },
  };
}

async function openCustomers(
  config: Config,
  { urls }: Pick<Receivers, 'urls'>,
  firstAccount: number,
): Promise<WebhookCustomer[]> {
  const engines = await openEngines(config, systemClock);
  const store = engines.store();
  await storeIdentity(store, systemClock);
  const accountIds = urls.map((_, index) => firstAccount + index);
  const writer = { store, clock: systemClock, author: { actor: 'bench', command: 'bench' } };
  const options = {
    allowPrivate: true,
    masterKeys: openMasterKeys(config),
    names: createNameLookup({ resolve: resolveName }),
  };
  const customers: WebhookCustomer[] = [];
  for (const { account, key } of await provision(store, accountIds)) {
    const receiver = customers.length;
    const prefix = parseKey(key)?.prefix ?? '';
    await setWebhook(writer, { accountId: account.id, prefix }, { ...options, url: urls[receiver] ?? '' });
    customers.push({ accountId: account.id, prefix, key, receiver });
  }
  await engines.close();
  return customers;
}

function drawTransactions(
  customers: readonly WebhookCustomer[],
  { count, firstId }: { readonly count: number; readonly firstId: number },
): WebhookTransaction[] {
  const nowMs = systemClock.now();
  const accountIds = customers.map(({ accountId }) => accountId);
  const drawn: WebhookTransaction[] = [];
  for (const event of generateTransactions({ seed: firstId, count, days: 1, endMs: nowMs, accountIds })) {
    if (!RECORDINGS.has(event.type)) continue;
    const customer = customers.find(({ accountId }) => accountId === event.data.account_id);
    if (customer === undefined) throw new Error(`account ${event.data.account_id} is nobody's`);
    const id = firstId + drawn.length;
    drawn.push({
      id,
      event: createdNow(event, { id, now: formatDateTime(nowMs) }),
      deliveryId: deliveryId(customer.prefix, id),
      receiver: customer.receiver,
    });
  }
  return drawn;
}

/** Sets the times to now, since the sample's own times are before the webhook was set. */
function createdNow(
  event: TransactionEvent,
  { id, now }: { readonly id: number; readonly now: string },
): TransactionEvent {
  const confirmed = event.type === 'TransactionConfirmed' ? { confirmed_at: now } : {};
  return {
    ...event,
    data: { ...event.data, ...confirmed, transaction_id: id, created_at: now },
  } as TransactionEvent;
}
