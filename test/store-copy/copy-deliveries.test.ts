import { expect, onTestFinished, test } from 'vitest';
import { deliveryId } from '../../src/deliveries/message/delivery-id.ts';
import type { StoredDelivery } from '../../src/deliveries/queue/log-copy.ts';
import { OtherLog } from '../../src/store-copy/other-log.ts';
import { PREFIX } from '../support/accounts/account-samples.ts';
import { settle } from '../support/deliveries/fake-scheduler.ts';
import { failedWith, PushMachine, READY } from '../support/deliveries/push.ts';
import { record } from '../support/event-store/store-events.ts';
import { copyFrom, type EmbeddedEnd, logOf, openEnd } from '../support/store-copy/store-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const idOf = (transactionId: number) => deliveryId(PREFIX, transactionId);

async function withEnds(
  folders: readonly [string, string],
  work: (source: EmbeddedEnd, target: EmbeddedEnd) => Promise<void>,
): Promise<void> {
  const [source, target] = [openEnd(folders[0]), openEnd(folders[1])];
  await work(source, target);
  await Promise.all([source.close(), target.close()]);
}

async function machineIn(folder: string): Promise<PushMachine> {
  const machine = new PushMachine(folder);
  onTestFinished(() => machine.close());
  return machine;
}

test('a webhooks role on the copy is handed every event and attempts only what had not ended', async () => {
  const folders = [temporaryFolder(), temporaryFolder()] as const;
  const before = await machineIn(folders[0]);
  before.start();
  await before.account(...READY);
  await before.push(500); // will be purged by the time of the copy
  await before.scheduler.advance(1_000);
  await before.scheduler.jump(100 * DAY_MS);
  expect(await before.queue.purge(before.scheduler.now() - 90 * DAY_MS, 10)).toBe(1);
  await before.push(501); // delivered
  await before.scheduler.advance(1_000);
  before.sender.answer = () => ({ outcome: failedWith(503), afterMs: 5 });
  await before.push(502); // will have failed
  await before.scheduler.advance(200_000);
  await before.push(503); // failed once, due again
  await before.scheduler.advance(100);
  await before.push(504);
  await before.scheduler.advance(100);
  await before.fan(await before.void(504)); // withdrawn
  await before.account({ type: 'IntegrationDisabled', data: { account_id: 7 } });
  await before.push(505); // held
  await before.scheduler.advance(100);
  before.kill();

  await withEnds(folders, async (source, target) => {
    await record(target.store, '$stats', 'every position is another one there');
    expect(await copyFrom(source, target)).toMatchObject({ deliveries: 5, faults: [] });
  });

  const after = await machineIn(folders[1]);
  await after.scheduler.jump(before.scheduler.now() - after.scheduler.now());
  after.start();
  await settle();
  const events = (await logOf(after.store)).filter(({ stream }) => stream.startsWith('transaction-'));
  expect(events).toHaveLength(7);
  await after.fan(...events);
  await after.scheduler.advance(HOUR_MS);
  expect(after.sender.sent).toEqual([]); // without access nothing is attempted
  await after.account({ type: 'IntegrationEnabled', data: { account_id: 7 } });
  await after.scheduler.advance(HOUR_MS);
  expect(after.sender.sent.map(({ id, attempt }) => [id, attempt]).sort()).toEqual(
    [
      [idOf(503), 2],
      [idOf(505), 1],
    ].sort(),
  );
  expect(await after.queue.countByState({})).toEqual({
    pending: 0,
    held: 0,
    delivered: 3,
    failed: 1,
    withdrawn: 1,
  });
  const [event] = await after.store.readStream('transaction-503');
  expect((await after.queue.find(idOf(503)))?.position).toBe(event?.position);
});

test('an account event before the copy ends what was owed before it, and nothing that was owed after it', async () => {
  const folders = [temporaryFolder(), temporaryFolder()] as const;
  const before = await machineIn(folders[0]);
  await before.account(...READY);
  before.start();
  before.sender.answer = () => ({ outcome: failedWith(503), afterMs: 5 });
  const event = (type: 'KeySwitchedOff' | 'KeySwitchedOn') =>
    ({ type, data: { account_id: 7, prefix: PREFIX } }) as const;
  await before.account(event('KeySwitchedOff'), event('KeySwitchedOn'));
  await before.push(501);
  await before.scheduler.advance(100);
  before.kill();
  await withEnds(folders, async (source, target) => {
    await record(target.store, '$stats', ...'every position is a larger one there'.split(' '), '', '', '');
    await copyFrom(source, target);
  });
  const after = await machineIn(folders[1]);
  await after.scheduler.jump(before.scheduler.now() - after.scheduler.now());
  after.start();
  await after.scheduler.advance(31_000);
  expect((await after.queue.find(idOf(501)))?.state).toBe('delivered');
});

test('two logs are read side by side, whatever the sizes of their batches', async () => {
  const ids = Array.from({ length: 20 }, (_, n) => String(n).padStart(2, '0'));
  const batches = async function* (): AsyncGenerator<readonly StoredDelivery[]> {
    for (const [from, to] of [
      [0, 3],
      [3, 4],
      [4, 12],
      [12, 20],
    ] as const) {
      yield ids.slice(from, to).map((id) => ({ id }) as StoredDelivery);
    }
  };
  for (const size of [1, 2, 5, 7, 20]) {
    const other = new OtherLog(batches());
    for (let at = 0; at < ids.length; at += size) {
      const range = ids.slice(at, at + size);
      expect([...(await other.upTo(range.at(-1))).keys()]).toEqual(range);
    }
    expect((await other.upTo(undefined)).size).toBe(0);
  }
  const other = new OtherLog(batches());
  await other.upTo('04x');
  expect((await other.upTo(undefined)).size).toBe(15);
});
