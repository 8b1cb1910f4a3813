import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { generate } from 'selfsigned';
import { Ledger } from '../../examples/ledger/ledger.ts';
import { createReceiver, type Receiver, type WebhookEvent } from '../../examples/receiver/receiver.ts';
import { systemClock } from '../../src/base/clock.ts';
import { generateTransactions } from '../../src/customers/sample/generator.ts';
import { formatDateTime } from '../../src/domain/values/date-time.ts';
import type { Author } from '../../src/event-store/new-event.ts';
import { importTransactions } from '../../src/operator/import/import-transactions.ts';
import type { DeliveryQueue } from '../../src/push/queue/delivery-queue.ts';
import type { Engines } from '../../src/service/engines/engines.ts';

const HOST = '127.0.0.1';
const ACCOUNT_ID = 7;
/** Higher than the ids of the sample. */
const FIRST_LIVE_ID = 1_000_001;
const ARRIVES_WITHIN_MS = 15_000;
const CHECK_EVERY_MS = 10;

/** A customer's receiver: the program of examples/receiver with its own certificate. */
export interface DemoReceiver {
  readonly url: string;
  /** The PEM file that the sender must trust. */
  readonly caFile: string;
  /** Starts the receiver with the secret, which is generated when the URL is set. */
  start(secret: string): Promise<void>;
  /** Resolves with the next event that the receiver accepts. */
  nextEvent(): Promise<WebhookEvent>;
  failNext(count: number): void;
  stop(): void;
}

/** Picks a port and generates a certificate in `folder`; the receiver listens after `start`. */
export async function demoReceiver(folder: string): Promise<DemoReceiver> {
  const port = await freePort();
  const { cert, private: key } = await generate([{ name: 'commonName', value: HOST }], {
    keyType: 'ec',
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames: [{ type: 7, ip: HOST }] },
    ],
  });
  const caFile = join(folder, 'receiver-cert.pem');
  await writeFile(caFile, cert);
  const ledger = new Ledger(join(folder, 'received.db'));
  let receiver: Receiver | undefined;
  let taken: (event: WebhookEvent) => void = () => undefined;
  return {
    url: `https://${HOST}:${port}/fuel-events`,
    caFile,
    async start(secret) {
      receiver = createReceiver({ secrets: [secret], cert, key, ledger, onEvent: (event) => taken(event) });
      receiver.server.listen(port, HOST);
      await once(receiver.server, 'listening');
    },
    nextEvent: () =>
      new Promise((resolve) => {
        taken = resolve;
      }),
    failNext: (count) => receiver?.failNext(count),
    stop() {
      receiver?.server.close();
      receiver?.server.closeAllConnections();
      ledger.close();
    },
  };
}

export interface PushDemo {
  readonly engines: Engines;
  readonly receiver: DemoReceiver;
  readonly author: Author;
  readonly say: (line: string) => void;
}

/** Confirms two transactions: one arrives at once, one with its retry. */
export async function showPush(demo: PushDemo): Promise<void> {
  const { receiver, say } = demo;
  say('\nconfirming a transaction:');
  await confirmAndAwait(demo, FIRST_LIVE_ID);
  say('making the receiver fail once, and confirming another:');
  receiver.failNext(1);
  await confirmAndAwait(demo, FIRST_LIVE_ID + 1);
}

async function confirmAndAwait({ engines, receiver, author, say }: PushDemo, id: number): Promise<void> {
  const arrival = receiver.nextEvent();
  const startedMs = performance.now();
  await confirm(engines, author, id);
  const late = new AbortController();
  const event = await Promise.race([
    arrival,
    sleep(ARRIVES_WITHIN_MS, undefined, { signal: late.signal }).then(() => {
      throw new Error(`transaction ${id} did not arrive within ${ARRIVES_WITHIN_MS / 1000} s`);
    }),
  ]);
  late.abort();
  const ms = Math.round(performance.now() - startedMs);
  say(`  ${event.type} ${event.data.transaction?.id} arrived after ${ms} ms, delivery ${event.id}`);
  const delivery = await delivered(engines.queue(), event.id);
  for (const { number, durationMs, outcome } of delivery.attempts) {
    say(`    attempt ${number}: answered ${outcome.answer?.status} in ${Math.round(durationMs)} ms`);
  }
}

/** Records one event, as the operator's core system does. */
async function confirm(engines: Engines, author: Author, id: number): Promise<void> {
  const nowMs = systemClock.now();
  const sample = generateTransactions({
    seed: id,
    count: 20,
    days: 1,
    endMs: nowMs,
    accountIds: [ACCOUNT_ID],
  });
  const event = sample.find(({ type }) => type === 'TransactionConfirmed');
  const now = formatDateTime(nowMs);
  const times = { created_at: now, confirmed_at: now, correction_reference_id: null };
  const line = JSON.stringify({ ...event, data: { ...event?.data, ...times, transaction_id: id } });
  await importTransactions({
    store: engines.store(),
    input: input(line),
    author,
    clock: systemClock,
    onRefused: (_, reason) => {
      throw new Error(`transaction ${id} was refused: ${reason}`);
    },
    onProgress: () => undefined,
    signal: new AbortController().signal,
  });
}

async function* input(line: string): AsyncGenerator<Buffer> {
  yield Buffer.from(line);
}

/** Waits until the delivery is recorded: the receiver has the event before its answer is recorded. */
async function delivered(queue: DeliveryQueue, id: string) {
  for (const deadlineMs = systemClock.now() + ARRIVES_WITHIN_MS; ; ) {
    const delivery = await queue.find(id);
    if (delivery?.state === 'delivered') return delivery;
    if (systemClock.now() > deadlineMs) throw new Error(`delivery ${id} was not recorded as delivered`);
    await sleep(CHECK_EVERY_MS);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, HOST);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
