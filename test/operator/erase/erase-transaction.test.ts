import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { eraseTransaction } from '../../../src/operator/erase/erase-transaction.ts';
import { removeErasedBytes } from '../../../src/operator/erase/erased-bytes.ts';
import { verifyLog } from '../../../src/seals/verify-log.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';
import { countByState } from '../../support/deliveries/listed.ts';
import { queueInFile } from '../../support/deliveries/open-queue.ts';
import { named, record } from '../../support/event-store/store-events.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { holders } from '../../support/holders.ts';
import { interposed, Steps } from '../../support/interposed.ts';
import { key, seal } from '../../support/seals/sealing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { viewInFolder } from '../../support/transactions/open-view.ts';
import { sampleRow, showing } from '../../support/transactions/records.ts';
import { rowIn } from '../../support/transactions/row-in.ts';

const CHANGES = ['append', 'erase', 'change', 'replace'];
/** An event, a row and a delivery of the transaction each hold one of these texts. */
const TEXTS = ['Sam Erased-Field', sampleRow({ id: 1 }).record, newDelivery(1).record];

/** The embedded stores with transaction 1: its event, its row and a delivery that is pending. */
async function stores() {
  const folder = temporaryFolder();
  const clock = new FakeClock();
  const store = openSqliteEventStore({ path: join(folder, 'events.db'), clock });
  const queue = queueInFile({ path: join(folder, 'deliveries.db'), clock });
  const view = viewInFolder(folder, clock);
  onTestFinished(async () => void (await Promise.all([store.close(), queue.close(), view.close()])));
  await store.append([{ stream: 'transaction-1', expected: 'none', events: [named('Sam Erased-Field')] }]);
  await queue.enqueue([newDelivery(1)]);
  const { generation } = await view.reset('store-1', 0);
  await view.apply([showing({ id: 1 })], { generation, position: 1 });
  const erase = async (
    id: number,
    { before }: { readonly before: Parameters<typeof interposed>[2] } = new Steps(),
    onStep: (step: string) => void = () => undefined,
  ) => {
    await eraseTransaction(id, {
      store: interposed(store, ['append', 'erase'], before),
      queue: interposed(queue, ['change'], before),
      view: interposed(view, ['replace'], before),
      clock,
      author: { actor: 'test', command: 'erase' },
      reason: 'asked for',
    });
    return removeErasedBytes({ embedded: ['store', 'view', 'queue'], view: () => view }, { folder, onStep });
  };
  const records = async () => (await store.readStream('operations')).map(({ data }) => data);
  const left = async () => ({
    events: (await store.readStream('transaction-1')).length,
    erased: await store.isErased('transaction-1'),
    delivery: (await queue.find(newDelivery(1).id))?.record,
    state: (await queue.find(newDelivery(1).id))?.state,
    row: await rowIn(view, 1),
  });
  return { folder, store, queue, erase, records, left };
}

const RECORD = { transaction_id: 1, account_id: 1, reason: 'asked for', leaves: expect.any(Array) };
const NOTHING_LEFT = { events: 0, erased: true, delivery: '', state: 'withdrawn', row: 'hidden' };

test('an erasure is on record before anything is erased, and events go before what is made of them', async () => {
  const { erase, left, records } = await stores();
  const seen: unknown[] = [];
  const look = async (): Promise<void> => {
    const { erased, delivery, row } = await left();
    seen.push([(await records()).length === 1, erased, delivery === '', row === 'hidden']);
  };
  await erase(1, { before: look });
  expect(seen).toEqual([
    [false, false, false, false],
    [true, false, false, false],
    [true, true, false, false],
    [true, true, true, false],
  ]);
  expect([await left(), await records()]).toEqual([NOTHING_LEFT, [RECORD]]);
});

test.each(CHANGES.keys().toArray())(
  'an erasure that ends after %i of its steps fails, and is completed by the same command',
  async (most) => {
    const { folder, erase, left, records } = await stores();
    const steps = new Steps(most);
    await expect(erase(1, steps)).rejects.toThrow('ended before');
    expect(steps.done).toEqual(CHANGES.slice(0, most));
    expect(await left()).not.toEqual(NOTHING_LEFT);
    expect(await erase(1)).toEqual([]);
    expect(await left()).toEqual(NOTHING_LEFT);
    expect((await records())[0]).toEqual(RECORD);
    expect(holders(folder, ...TEXTS)).toEqual([]);
  },
);

test('no file holds a byte of what was erased, though the removal of bytes was ended at any of its steps', async () => {
  const names = (steps: Steps): string[] => steps.done.map((step) => step.replace(/ .*\//, ' '));
  for (let most = 0; ; most++) {
    const { folder, erase } = await stores();
    expect(holders(folder, ...TEXTS)).not.toEqual([]);
    const steps = new Steps(most);
    const killed = await erase(1, new Steps(), steps.before).catch((error: Error) => error.message);
    if (typeof killed !== 'string') {
      expect(names(steps)).toEqual(
        ['events.db', 'transactions.db', 'transactions-1.db', 'deliveries.db'].flatMap((file) => [
          `rewriting ${file}`,
          `emptying ${file}-wal`,
        ]),
      );
      return;
    }
    expect(await erase(1)).toEqual([]);
    expect(holders(folder, ...TEXTS)).toEqual([]);
  }
});

test('a transaction that is erased again is on record once, and deliveries that came since are erased', async () => {
  const { queue, erase, left, records } = await stores();
  await erase(1);
  await queue.enqueue([newDelivery(1, { prefix: 'bbbbbbbbbb' })]);
  expect(await erase(1)).toEqual([]);
  expect([await left(), await records()]).toEqual([NOTHING_LEFT, [RECORD]]);
  expect(await countByState(queue)).toMatchObject({ withdrawn: 2 });
});

test.each([true, false])(
  'what was erased is a gap of the proof, whether it was sealed before: %s',
  async (isSealed) => {
    const { store, erase } = await stores();
    const [event] = await store.readStream('transaction-1');
    await record(store, 'transaction-2', 'a');
    if (isSealed) await seal(store);
    await expect(erase(1, new Steps(1))).rejects.toThrow('ended before'); // on record, and not done
    await seal(store);
    await erase(1);
    await record(store, 'transaction-3', 'b');
    await seal(store);
    const { fault, erased } = await verifyLog({ store, key });
    expect(fault).toBeUndefined();
    expect(erased).toEqual([expect.objectContaining({ events: 1, actor: 'test', reason: 'asked for' })]);
    expect(JSON.stringify(await store.readStream('operations'))).not.toContain(event?.id);
  },
);

test('a transaction that was never recorded is refused, and can be recorded later', async () => {
  const { store, erase, records } = await stores();
  await expect(erase(2)).rejects.toMatchObject({ code: 'REFUSED' });
  expect([await store.isErased('transaction-2'), await records()]).toEqual([false, []]);
});

test('an event that is nested too deeply, or names no account, is erased too', async () => {
  const { store, erase, records } = await stores();
  const deep = JSON.parse(`{"account_id":"three","deep":${'['.repeat(1_100)}${']'.repeat(1_100)}}`);
  const events = [{ ...named('x'), data: deep }];
  await store.append([{ stream: 'transaction-3', expected: 'none', events }]);
  expect(await erase(3)).toEqual([]);
  expect(await store.isErased('transaction-3')).toBe(true);
  expect(await records()).toMatchObject([{ transaction_id: 3, account_id: null }]);
});
