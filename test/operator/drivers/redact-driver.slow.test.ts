import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { readToEnd } from '../../../src/event-store/reads.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { audit } from '../../../src/operator/audit/audit.ts';
import { checkExport } from '../../../src/operator/audit/check-export.ts';
import { exportProof } from '../../../src/operator/audit/export-proof.ts';
import { findDriver } from '../../../src/operator/drivers/find-driver.ts';
import { type RedactionOptions, redactDriver } from '../../../src/operator/drivers/redact-driver.ts';
import { removeErasedBytes } from '../../../src/operator/erase/erased-bytes.ts';
import { AccountHistory } from '../../../src/push/fan-out/account-history.ts';
import { FanOut } from '../../../src/push/fan-out/fan-out.ts';
import { projectEvent } from '../../../src/records/project-event.ts';
import { verifyLog } from '../../../src/seals/verify-log.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { verifyDeliveries } from '../../support/agreement/verify.ts';
import { listed } from '../../support/deliveries/listed.ts';
import { onFile, openPushStoresWith } from '../../support/deliveries/push-stores.ts';
import { eventStoreDbOnDouble } from '../../support/event-store/eventstoredb-under-test.ts';
import { holders } from '../../support/holders.ts';
import { interposed, replacing, Steps } from '../../support/interposed.ts';
import { key, seal } from '../../support/seals/sealing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  confirmed,
  type EventLine,
  external,
  linesOf,
  voided,
} from '../../support/transactions/e2e-samples.ts';
import { importAll } from '../../support/transactions/importing.ts';
import { projectionOf } from '../../support/transactions/projector.ts';
import { rowIn } from '../../support/transactions/row-in.ts';

const DAY_MS = 86_400_000;
const AFTER_URL = { created_at: '2026-09-03T08:30:00.000Z' };
const OTHER = { driver: { id: 78, name: 'Lee Moss', mobile_number: '+15550199' } };
const LINES: readonly EventLine[] = [
  confirmed(1, AFTER_URL),
  external(2, AFTER_URL),
  voided(2),
  confirmed(3, { ...AFTER_URL, ...OTHER }),
  confirmed(4, { ...AFTER_URL, account_id: 9 }),
  confirmed(5, {
    ...AFTER_URL,
    email: 'x',
    driver: { id: 77, name: 'Samuel', mobile_number: null, born: 1980 },
  }),
];
const FIGURES = { events: 3, rows: 2, deliveries: 2 }; // the one of what was voided is empty already
const NOTHING = { events: 0, rows: 0, deliveries: 0 };

const engines: readonly [string, () => Promise<EventStore | undefined>][] = [
  ['the embedded store', async () => undefined],
  ['EventStoreDB', eventStoreDbOnDouble],
];

describe.each(engines)('on %s', (_, openOther) => {
  /** Transactions 1, 2 (voided) and 5 have driver 77 of account 7, each with a delivery. */
  async function stores() {
    const other = await openOther();
    if (other !== undefined) onTestFinished(() => other.close());
    const { folder, clock, view, coordination, openQueue, author, ...rest } = projectionOf(
      openPushStoresWith(onFile),
    );
    const store = other ?? rest.store;
    const queue = openQueue();
    const append = async (stream: string, events: readonly { type: string; data: unknown }[]) => {
      const own = () => ({ id: crypto.randomUUID(), metadata: METADATA as never });
      const recorded = events.map((event) => ({ ...event, ...own() }));
      await store.append([{ stream, expected: 'any', events: recorded }]);
    };
    await append('account-7', [opened(), keyIssued(), webhookSet()]);
    for (const line of LINES) await append(`transaction-${line.data.transaction_id}`, [line]);
    const all = async (): Promise<RecordedEvent[]> => {
      const batches = await Array.fromAsync(readToEnd(store, { prefixes: ['transaction-'], after: 0 }));
      return batches.flatMap(({ events }) => [...events]);
    };
    const fan = async (events: readonly RecordedEvent[]) => {
      const history = new AccountHistory({ store });
      const accept = async (deliveries: Parameters<typeof queue.enqueue>[0]) =>
        void (await queue.enqueue(deliveries));
      const terms = { clock, environment: 'staging', retentionMs: 90 * DAY_MS } as const;
      const fanOut = new FanOut({ store, queue, history, accept, ...terms });
      return (await fanOut.handle(events.map((event) => ({ event, retryCount: 0 })))).map(({ kind }) => kind);
    };
    const project = async (generation: number) => {
      const events = await all();
      return view.apply(events.map(projectEvent), { generation, position: events.at(-1)?.position ?? 0 });
    };
    const { generation } = await view.reset('store-1', 0);
    const redact = (options: Partial<RedactionOptions> = {}, driverId = 77) =>
      redactDriver(
        { accountId: 7, driverId },
        {
          store,
          view,
          queue,
          coordination,
          clock,
          author,
          reason: 'asked for',
          subscriptions: { status: async () => undefined },
          signal: new AbortController().signal,
          onProgress: () => undefined,
          ...options,
        },
      );
    const verify = () =>
      verifyDeliveries({
        store,
        queue,
        clock,
        environment: 'staging',
        retentionMs: 90 * DAY_MS,
        settleMs: 0,
        logStartedAtMs: clock.now() - DAY_MS,
      });
    /** Everything that is kept of the driver's transactions, as text. */
    const texts = async () => {
      const streams = await store.readStreams([1, 2, 5].map((id) => `transaction-${id}`));
      const rows = await Promise.all([1, 2, 5].map((id) => rowIn(view, id)));
      const logged = await listed(queue, { transactionIds: [1, 2, 5] });
      const deliveries = await Promise.all(logged.map(({ id }) => queue.find(id)));
      return {
        streams: JSON.stringify(streams),
        rows: JSON.stringify(rows),
        deliveries: JSON.stringify(deliveries),
      };
    };
    /**
     * Removes the bytes that were redacted, as the command does at its end. Returns the files that still have the name that only
     * transaction 5 had.
     */
    const left = async () => {
      const cleaned = await removeErasedBytes({ embedded: ['store'], view: () => view }, { folder });
      return [...cleaned, ...holders(folder, 'Samuel')];
    };
    return { store, view, queue, clock, generation, all, fan, project, redact, verify, texts, append, left };
  }
  const METADATA = { schema_version: 1, at: '2026-09-03T09:00:00.000Z', actor: 'ada', command: 'test' };

  test('a redaction takes name and number out of stream, view and deliveries, and leaves all else', async () => {
    const { store, view, queue, generation, all, fan, project, redact, verify, texts } = await stores();
    await project(generation);
    await fan(await all());
    const before = [await rowIn(view, 3), await rowIn(view, 4), await listed(queue, { transactionIds: [3] })];
    const verified = await verify();
    expect(await redact({ dryRun: true })).toEqual(FIGURES);
    expect((await texts()).streams).toContain('Sam Field');
    expect(await redact()).toEqual(FIGURES);
    const after = await texts();
    for (const text of Object.values(after)) expect(text).not.toMatch(/Sam Field|Samuel|born|15550100/);
    expect(after.streams.match(/"name":"REDACTED","mobile_number":null/g)).toHaveLength(3);
    expect(after.streams).toContain('"email":"x"');
    expect([
      await rowIn(view, 3),
      await rowIn(view, 4),
      await listed(queue, { transactionIds: [3] }),
    ]).toEqual(before);
    expect(await rowIn(view, 2)).toBe('hidden');
    expect((await store.readStream('operations')).map(({ type, data }) => [type, data])).toEqual([
      ['DriverRedacted', { driver_id: 77, account_id: 7, reason: 'asked for', leaves: expect.any(Array) }],
    ]);
    const { states, ...agreed } = await verify();
    expect({ ...agreed, states }).toEqual(verified);
    const head = await store.head();
    expect(await redact()).toEqual(NOTHING);
    expect(await store.head()).toBe(head);
  });

  test('a redacted log is proven, and says what is not what it was; nothing computes the name from what is left', async () => {
    const { store, all, redact, append } = await stores();
    await seal(store);
    const ids = (await all()).filter(({ stream }) => stream === 'transaction-1').map(({ id }) => id);
    await redact();
    await append('account-8', [opened('Other', 8)]);
    await seal(store);
    const { fault, erased } = await verifyLog({ store, key });
    expect(fault).toBeUndefined();
    // EventStoreDB shows the former events until it is scavenged: they still are what was sealed.
    const events = erased.reduce((sum, each) => sum + each.events, 0);
    expect([0, FIGURES.events]).toContain(events);
    const range = { follow: false, signal: new AbortController().signal };
    const isHis = (line: string): boolean => /transaction-[125]"/.test(line);
    const printed = (await Array.fromAsync(audit(store, {}, range))).map((line) => JSON.stringify(line));
    expect(printed.filter(isHis).join('\n')).not.toMatch(/Sam Field|Samuel|15550100/);
    const folder = join(temporaryFolder(), 'export');
    await exportProof({ store, accountId: 7, folder });
    const written = readFileSync(join(folder, 'events.jsonl'), 'utf8').split('\n');
    expect(written.filter(isHis).join('\n')).not.toMatch(/Sam Field|Samuel|15550100/);
    expect((await checkExport(folder, key)).faults).toEqual([]);
    const left = JSON.stringify([await store.readStreams(['transaction-1', 'operations'])]);
    for (const id of ids) expect(left).not.toContain(id);
  });

  test('a view that is built from the log afterwards shows the same, and parks nothing', async () => {
    const { view, generation, fan, all, project, redact } = await stores();
    await project(generation);
    await redact();
    const built = await view.startBuild({ storeId: 'store-1', servesFrom: 1 });
    expect(await project(built.generation)).toEqual([]);
    for (const id of [1, 2, 3, 4, 5])
      expect(JSON.stringify(await rowIn(view, id, built.generation))).toBe(
        JSON.stringify(await rowIn(view, id)),
      );
    expect(await project(generation)).toEqual([]);
    expect(JSON.stringify(await rowIn(view, 1))).not.toContain('Sam Field');
    expect(new Set(await fan(await all()))).toEqual(new Set(['ack']));
  });

  test('what is fanned out later names no driver, and nothing is owed a second time', async () => {
    const { queue, all, fan, redact, verify, texts, append } = await stores();
    const former = await all();
    await redact();
    await append('account-7', [keyIssued({ prefix: 'zzzzzzzzzz' }), webhookSet({ prefix: 'zzzzzzzzzz' })]);
    await fan([...former, ...(await all())]);
    expect((await texts()).deliveries).not.toMatch(/Sam Field|Samuel|15550100/);
    const logged = await listed(queue, { transactionIds: [1, 5] });
    expect(logged.map(({ prefix }) => prefix)).toEqual([PREFIX, PREFIX]);
    expect(await verify()).toMatchObject({ missing: [], surplus: [] });
  });

  test('the record of before changes nothing where it is imported again, and another one is refused', async () => {
    const { store, clock, redact } = await stores();
    await redact();
    const { counts } = await importAll({ store, clock, lines: linesOf(LINES) });
    expect(counts).toEqual({ recorded: 0, unchanged: LINES.length, refused: 0 });
    const other = confirmed(1, { ...AFTER_URL, odometer_reading: 1 });
    expect((await importAll({ store, clock, lines: linesOf([other]) })).counts.refused).toBe(1);
  });

  test('a void that comes between is kept, in stream and view', async () => {
    const { store, view, generation, project, redact, append } = await stores();
    await project(generation);
    let isVoided = false;
    const meanwhile = replacing(store, {
      async rewrite(events) {
        if (!isVoided && events[0]?.stream === 'transaction-1') {
          isVoided = true;
          await append('transaction-1', [voided(1)]);
          await project(generation);
        }
        return store.rewrite(events);
      },
    });
    expect(await redact({ store: meanwhile })).toMatchObject({ events: 3 });
    expect(await rowIn(view, 1)).toBe('hidden');
    expect((await store.readStream('transaction-1')).map(({ type }) => type)).toEqual([
      'TransactionConfirmed',
      'TransactionVoided',
    ]);
  });

  test('a redaction that ends between any two of its steps is completed by the same command', async () => {
    for (let most = 0; ; most++) {
      const { store, view, queue, generation, all, fan, project, redact, texts, left } = await stores();
      await project(generation);
      await fan(await all());
      const { before } = new Steps(most);
      const killed = await redact({
        store: interposed(store, ['append', 'rewrite'], before),
        view: interposed(view, ['replace'], before),
        queue: interposed(queue, ['change'], before),
      }).catch((error: Error) => error);
      await redact();
      expect(JSON.stringify(await texts())).not.toMatch(/Sam Field|Samuel|born|15550100/);
      expect(await left()).toEqual([]);
      expect(await redact()).toEqual(NOTHING);
      if (!(killed instanceof Error)) break;
      expect(killed.message).toContain('ended before');
    }
  });

  test('a driver that no transaction of the account has is refused, and an interruption changes nothing', async () => {
    const { redact, store } = await stores();
    const head = await store.head();
    await expect(redact({}, 79)).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await redact({ signal: AbortSignal.abort() })).toEqual(NOTHING);
    expect(await store.head()).toBe(head);
  });

  test('a driver is found by id and by a part of name or number, of one account or all', async () => {
    const { store, redact } = await stores();
    const ids = async (driver: number | string, accountId?: number) => {
      const options = { store, signal: new AbortController().signal, onProgress: () => undefined };
      return (await Array.fromAsync(findDriver({ driver, accountId }, options))).map(({ id }) => id);
    };
    expect(await ids(77)).toEqual([1, 2, 4, 5]);
    expect(await ids(77, 7)).toEqual([1, 2, 5]);
    expect(await ids('sam', 7)).toEqual([1, 2, 5]);
    for (const number of ['+15550199', '1 (555) 01-99', '550199']) expect(await ids(number)).toEqual([3]);
    expect(await ids('77')).toEqual([1, 2, 4, 5]);
    await redact();
    expect(await ids('sam')).toEqual([4]);
    expect(await ids(77, 7)).toEqual([1, 2, 5]);
  });
});
