import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import type { DomainEvent } from '../../../src/domain/events.ts';
import { loadConfig, openEngines } from '../../../src/engines/engines.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { claimOptions, delivered, failed, newDelivery } from '../deliveries/deliveries.ts';
import { confirmedData, externalData } from '../transactions/records.ts';

/** Preparations that a transcript needs and no command of the program makes. */
export const PREPARATIONS: Readonly<Record<string, (...args: readonly string[]) => unknown>> = {
  append,
  deliver,
  /** Makes the files that a service makes when it starts. */
  served: () =>
    withEngines(async ({ queue, requests, view }) => {
      for (const open of [queue, requests]) open();
      await view().checkpoint();
    }),
  /** Names the store, as the first start does. */
  named: () => withEngines(async ({ store }) => void (await storeIdentity(store(), systemClock))),
  touch(file = '') {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '');
  },
  rm: (file = '') => rmSync(file, { recursive: true }),
};

interface EventLine {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** The time at which it is recorded; now by default. */
  readonly at?: string;
}

const SAMPLES: Readonly<Record<string, () => object>> = {
  TransactionConfirmed: confirmedData,
  ExternalTransactionRecorded: externalData,
};

/** Records the events of a file. A transaction's data is completed with that of a sample. */
function append(file = ''): Promise<void> {
  return withEngines(async (engines) => {
    for (const { type, data, at } of documentsIn<EventLine>(file)) {
      const { transaction_id: transaction, account_id: account } = data;
      const stream = transaction === undefined ? `account-${account}` : `transaction-${transaction}`;
      const event = { type, data: { ...SAMPLES[type]?.(), ...data } } as DomainEvent;
      const atMs = at === undefined ? systemClock.now() : Date.parse(at);
      const events = [newEvent(event, { actor: 'test', command: 'test' }, atMs)];
      await engines.store().append([{ stream, expected: 'any', events }]);
    }
  });
}

interface DeliveryLine {
  readonly transaction: number;
  readonly key: string;
  readonly account: number;
  readonly state: 'pending' | 'delivered' | 'failed';
}

/** Stores the deliveries of a file, each created as many seconds after the epoch as its transaction's id says. */
function deliver(file = ''): Promise<void> {
  return withEngines(async (engines) => {
    const queue = engines.queue();
    for (const { transaction, key: prefix, account: accountId, state } of documentsIn<DeliveryLine>(file)) {
      const made = newDelivery(transaction, { prefix, accountId, createdAtMs: transaction * 1_000 });
      if (state === 'pending') await queue.enqueue([made]);
      else
        for (const claim of await queue.enqueue([made], claimOptions(9_000)))
          await queue.report([(state === 'failed' ? failed : delivered)(claim, 10_000)]);
    }
  });
}

function documentsIn<T>(file: string): T[] {
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

async function withEngines(work: (engines: Engines) => Promise<void>): Promise<void> {
  const engines = await openEngines(loadConfig(process.env, 'command'), systemClock);
  try {
    await work(engines);
  } finally {
    await engines.close();
  }
}
