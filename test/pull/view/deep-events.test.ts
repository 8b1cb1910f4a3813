import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { readToEnd } from '../../../src/event-store/reads.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { audit } from '../../../src/operator/audit/audit.ts';
import { AccountHistory } from '../../../src/push/fan-out/account-history.ts';
import { FanOut } from '../../../src/push/fan-out/fan-out.ts';
import type { NewDelivery } from '../../../src/push/queue/delivery.ts';
import { modelOf } from '../../support/accounts/account-model.ts';
import { opened } from '../../support/accounts/account-samples.ts';
import { verifyView } from '../../support/agreement/verify.ts';
import { onFile, openPushStoresWith } from '../../support/deliveries/push-stores.ts';
import { eventStoreDbOnDouble } from '../../support/event-store/eventstoredb-under-test.ts';
import { nested, nestedText } from '../../support/transactions/deep-values.ts';
import { confirmed, type EventLine, voided } from '../../support/transactions/e2e-samples.ts';
import { type Projection, projectionOf } from '../../support/transactions/projector.ts';
import { rowIn } from '../../support/transactions/row-in.ts';
import { until } from '../../support/waiting.ts';

const METADATA = { schema_version: 1 } as never;
const TOO_DEEP = 'data nests deeper than 64 levels';
/** An event as deep as can be appended. Recursive code would still overflow. */
const deep = ({ type, data }: EventLine): EventLine => ({ type, data: { ...data, extra: nested(3_000) } });

async function append(store: EventStore, stream: string, ...events: readonly object[]): Promise<void> {
  const all = events.map((event) => ({ id: crypto.randomUUID(), metadata: METADATA, ...event }) as never);
  await store.append([{ stream, expected: 'any', events: all }]);
}

/** Inserts an event into the file directly, as another program could, since JSON.stringify can't make such a text. */
function insertDeepest(folder: string): void {
  const db = new DatabaseSync(join(folder, 'events.db'));
  const insert = db.prepare(
    `INSERT INTO events (stream, revision, id, type, recorded_at, data, metadata) VALUES (?, 0, ?, ?, 0, ?, ?)`,
  );
  for (const [stream, type] of [
    ['transaction-6', 'TransactionConfirmed'],
    ['account-6', 'AccountOpened'],
  ] as const) {
    insert.run(
      stream,
      crypto.randomUUID(),
      type,
      nestedText(200_000),
      `{"schema_version":${nestedText(200_000)}}`,
    );
  }
  db.close();
}

const engines = [
  [
    'the embedded store',
    async ({ store, folder }: Projection<EventStore>): Promise<EventStore> => {
      insertDeepest(folder);
      return store;
    },
  ],
  [
    'EventStoreDB',
    async (): Promise<EventStore> => {
      const store = await eventStoreDbOnDouble();
      onTestFinished(() => store.close());
      return store;
    },
  ],
] as const;

describe.each(engines)('an event of %s that nests deeper than anything needs', (engine, openStore) => {
  const isEmbedded = engine === 'the embedded store';
  const opening = async () => {
    const projection = projectionOf(openPushStoresWith(onFile));
    const store = await openStore(projection);
    await append(store, 'account-7', opened());
    await append(store, 'account-8', deep(opened('Deep', 8) as EventLine));
    await append(store, 'transaction-1', confirmed(1));
    await append(store, 'transaction-2', deep(confirmed(2)), voided(2));
    await append(store, 'transaction-3', confirmed(3), deep(confirmed(3)));
    await append(store, 'transaction-4', confirmed(4));
    const events: RecordedEvent[] = [];
    for await (const batch of readToEnd(store, { prefixes: [], after: 0 })) {
      for (const event of batch.events) events.push(event);
    }
    return { ...projection, store, events };
  };

  test('is parked by the projector, and the others are shown', async () => {
    const { store, view, start } = await opening();
    start({ store });
    await until(async () => (await rowIn(view, 4)) !== undefined);
    const parked = (await view.parked()).map(({ stream, reason }) => [stream, reason]);
    expect(parked.sort()).toEqual([
      ['transaction-2', TOO_DEEP],
      ['transaction-3', TOO_DEEP],
      // The length is checked first.
      ...(isEmbedded ? [['transaction-6', 'metadata has 400019 bytes, more than 65536']] : []),
    ]);
    for (const id of [1, 3, 4]) expect(await rowIn(view, id)).toMatchObject({ id });
    expect(await verifyView({ store, view, settleMs: 0 })).toMatchObject({
      differences: [],
    });
  });

  test('is parked by the fan-out, and the others are handled', async () => {
    const { store, events, clock } = await opening();
    const withdrawn: number[] = [];
    const accepted: NewDelivery[] = [];
    const fanOut = new FanOut({
      store,
      queue: {
        change: async (change) => (change.kind === 'withdraw' ? withdrawn.push(...change.transactionIds) : 0),
      },
      history: new AccountHistory({ store }),
      accept: async (deliveries) => void accepted.push(...deliveries),
      clock,
      environment: 'staging',
      retentionMs: Number.MAX_SAFE_INTEGER,
    });
    const ofTransactions = events.filter(({ stream }) => stream.startsWith('transaction-'));
    const settled = await fanOut.handle(ofTransactions.map((event) => ({ event, retryCount: 0 })));
    const parked = settled.filter(({ kind }) => kind === 'park').map(({ event }) => event.event.stream);
    expect(parked.sort()).toEqual([
      'transaction-2',
      'transaction-3',
      ...(isEmbedded ? ['transaction-6'] : []),
    ]);
    expect(settled.filter(({ kind }) => kind === 'ack')).toHaveLength(4);
    expect(withdrawn).toEqual([2]);
  });

  test('closes its own account, and no other', async () => {
    const { store } = await opening();
    const model = await modelOf(store as EventStore);
    expect(model.account(7)?.unreadable).toBeNull();
    expect(model.account(8)?.unreadable?.reason).toBe(TOO_DEEP);
  });

  test('is named to an auditor, without data where it has no text', async () => {
    const { store } = await opening();
    const lines = await Array.fromAsync(
      audit(store, {}, { follow: false, signal: new AbortController().signal }),
    );
    const without = lines.filter(({ data }) => data === null).map(({ stream }) => stream);
    expect(without.sort()).toEqual([
      ...(isEmbedded ? ['account-6'] : []),
      'account-8',
      'transaction-2',
      'transaction-3',
      ...(isEmbedded ? ['transaction-6'] : []),
    ]);
    for (const line of lines) JSON.stringify(line);
  });
});
