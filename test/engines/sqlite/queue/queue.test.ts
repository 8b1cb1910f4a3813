import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../../../src/base/clock.ts';
import { openSqliteDeliveryQueue } from '../../../../src/engines/sqlite/queue/queue.ts';
import { queryOf } from '../../../../src/engines/sqlite/queue/reads.ts';
import { selectionOf } from '../../../../src/engines/stored/delivery-index.ts';
import type { DeliveryQueue } from '../../../../src/push/queue/delivery-queue.ts';
import { boundedReadsContract } from '../../../contracts/bounded-reads.contract.ts';
import { deliveryLogContract } from '../../../contracts/delivery-log.contract.ts';
import {
  deliveryQueueContract,
  sharedDeliveryQueueContract,
} from '../../../contracts/delivery-queue.contract.ts';
import { deliveryQueueModelContract } from '../../../contracts/delivery-queue-model.contract.ts';
import { deliveryQueueOperationsContract } from '../../../contracts/delivery-queue-operations.contract.ts';
import { webhookHealthContract } from '../../../contracts/webhook-health.contract.ts';
import { claimOptions, delivered, newDelivery } from '../../../support/deliveries/deliveries.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const CLAIMER = join(import.meta.dirname, '../../../support/deliveries/claim-delivery-and-die.ts');
const LEASE_MS = 60_000;

const open = async () => {
  const path = join(temporaryFolder(), 'deliveries.db');
  const clock = new FakeClock();
  const again = () => openSqliteDeliveryQueue({ path, clock });
  return { queue: again(), again, clock, log: { path } };
};

deliveryQueueContract(open);
sharedDeliveryQueueContract(open);
deliveryQueueOperationsContract(open);
webhookHealthContract(open);
deliveryLogContract(open);
deliveryQueueModelContract(open);
boundedReadsContract(open);

describe('the embedded delivery queue', () => {
  const openAt = (path: string, clock: Clock): DeliveryQueue => {
    const queue = openSqliteDeliveryQueue({ path, clock });
    onTestFinished(() => queue.close());
    return queue;
  };

  test('makes what a killed process had claimed due again when its lease ends, under the same number', async () => {
    const path = join(temporaryFolder(), 'deliveries.db');
    const queue = openAt(path, { now: Date.now });
    const owed = [1, 2, 3].map((n) => newDelivery(n));
    await queue.enqueue(owed);
    const [, killedBy] = await once(spawn(process.execPath, [CLAIMER, path, String(LEASE_MS)]), 'exit');
    expect(killedBy).toBe('SIGKILL');
    const dueAtMs = (await queue.nextDueAtMs()) as number;
    expect(dueAtMs).toBeGreaterThan(Date.now());
    expect(await queue.claim(claimOptions(dueAtMs - 1))).toEqual([]);
    const again = await queue.claim(claimOptions(dueAtMs));
    expect(again.map(({ id, attemptNumber }) => [id, attemptNumber])).toEqual(owed.map(({ id }) => [id, 1]));
  });

  test('keeps what was committed when it is opened again, and its name dates from the file’s beginning', async () => {
    const path = join(temporaryFolder(), 'deliveries.db');
    const clock = new FakeClock();
    const first = openSqliteDeliveryQueue({ path, clock });
    const startedAtMs = clock.now();
    const claimed = await first.enqueue([newDelivery(1)], claimOptions(1_000));
    await first.report(claimed.map((entry) => delivered(entry, 1_000)));
    const before = await first.find(newDelivery(1).id);
    await first.close();
    clock.advance(1_000);
    const second = openAt(path, clock);
    expect(await second.find(newDelivery(1).id)).toEqual(before);
    expect((await second.logId()).startedAtMs).toBe(startedAtMs);
  });

  test('shows and copies the newest 50 attempts of a delivery of which an earlier version kept more', async () => {
    const path = join(temporaryFolder(), 'deliveries.db');
    const queue = openAt(path, new FakeClock());
    const claimed = await queue.enqueue([newDelivery(1)], claimOptions(1_000));
    await queue.report(claimed.map((entry) => delivered(entry, 1_000)));
    const db = new DatabaseSync(path);
    const more = db.prepare(
      `INSERT INTO attempts (delivery, cycle, number, started_at, duration, outcome)
       SELECT delivery, ?, number, started_at, duration, outcome FROM attempts LIMIT 1`,
    );
    for (let cycle = 2; cycle <= 60; cycle++) more.run(cycle);
    db.close();
    const newest = Array.from({ length: 50 }, (_, n) => n + 11);
    const found = await queue.find(newDelivery(1).id);
    expect(found?.attempts.map(({ cycle }) => cycle)).toEqual(newest);
    expect((await queue.storedAfter(-1))[0]?.attempts).toEqual(found?.attempts);
  });

  test('finds a delivery by its id whichever thousand it is of, and no other', async () => {
    const queue = openAt(join(temporaryFolder(), 'deliveries.db'), new FakeClock());
    expect(await queue.find('x')).toBeUndefined();
    const claimed = await queue.enqueue(
      Array.from({ length: 5_000 }, (_, n) => newDelivery(n)),
      claimOptions(1_000, { laneCapacity: () => 5_000 }),
    );
    await queue.report(claimed.slice(0, 2_500).map((claim) => delivered(claim, 1_000)));
    await queue.purge(10_000, 2_400); // from here on the first parts are missing
    for (const n of [2_400, 2_499, 2_500, 4_095, 4_999])
      expect((await queue.find(newDelivery(n).id))?.transactionId).toBe(n);
    for (const n of [0, 2_399, 5_000]) expect(await queue.find(newDelivery(n).id)).toBeUndefined();
    expect(await queue.redeliver(newDelivery(2_450).id, { force: true, dueAtMs: 1 })).toBe('due');
  });

  test('takes over the file of a version that had a unique index of the ids', async () => {
    const path = join(temporaryFolder(), 'deliveries.db');
    const owed = [1, 2, 3].map((n) => newDelivery(n));
    const first = openSqliteDeliveryQueue({ path, clock: new FakeClock() });
    const claimed = await first.enqueue(owed, claimOptions(1_000));
    await first.report(claimed.slice(0, 1).map((claim) => delivered(claim, 1_000)));
    const before = await first.storedAfter(-1);
    await first.close();
    const db = new DatabaseSync(path);
    db.exec(`CREATE TABLE former (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, prefix TEXT NOT NULL,
      account_id INTEGER NOT NULL, transaction_id INTEGER NOT NULL, type TEXT NOT NULL, created_at INTEGER NOT NULL,
      position INTEGER NOT NULL, recorded_at INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT, ended_at INTEGER,
      cycle INTEGER NOT NULL, attempts_in_cycle INTEGER NOT NULL, due_at INTEGER, lease TEXT) STRICT;
      INSERT INTO former SELECT * FROM deliveries; DROP TABLE deliveries; ALTER TABLE former RENAME TO deliveries;
      CREATE INDEX by_transaction ON deliveries (transaction_id); DROP INDEX lanes_of_account;
      ALTER TABLE lanes DROP COLUMN account_id; PRAGMA user_version = 4`);
    db.close();
    const queue = openAt(path, new FakeClock());
    expect(await queue.storedAfter(-1)).toEqual(before);
    await queue.enqueue(owed);
    expect(await queue.storedAfter(-1)).toEqual(before);
    await queue.report(claimed.slice(1).map((claim) => delivered(claim, 1_000)));
    expect((await queue.find(newDelivery(3).id))?.state).toBe('delivered');
    expect((await queue.page({ accountId: 7 }, { limit: 9 })).deliveries).toHaveLength(3);
  });

  test('finds due work, held accounts and a page of the log by an index of each, without reading the rest', () => {
    const path = join(temporaryFolder(), 'deliveries.db');
    openAt(path, new FakeClock());
    const db = new DatabaseSync(path);
    onTestFinished(() => db.close());
    const planOf = (sql: string): string =>
      db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map((row) => row.detail)
        .join('; ');
    expect(planOf('SELECT prefix FROM lanes WHERE next_due_at <= 1 ORDER BY next_due_at, prefix')).toBe(
      'SEARCH lanes USING COVERING INDEX lanes_due (next_due_at<?)',
    );
    expect(
      planOf("SELECT seq FROM deliveries WHERE prefix = 'a' AND due_at <= 1 ORDER BY due_at, seq LIMIT 1"),
    ).toBe('SEARCH deliveries USING COVERING INDEX due_in_lane (prefix=? AND due_at<?)');
    expect(planOf("SELECT min(due_at) FROM deliveries WHERE prefix = 'a' AND due_at IS NOT NULL")).toMatch(
      /^SEARCH deliveries USING COVERING INDEX due_in_lane \(prefix=\?/,
    );
    const pageOf = (filter: Parameters<typeof selectionOf>[0]): string => {
      const { index, inIndex, others } = selectionOf(filter, ['failed']);
      return planOf(`SELECT id ${queryOf(index, [...inIndex, ...others]).sql} LIMIT 1`);
    };
    const lastTerm = 'USE TEMP B-TREE FOR LAST TERM OF ORDER BY'; // of one millisecond
    expect(pageOf({})).toBe(`SCAN deliveries USING INDEX by_time; ${lastTerm}`);
    expect(pageOf({ prefix: 'a', sinceMs: 1 })).toBe(
      `SEARCH deliveries USING INDEX by_lane (prefix=? AND created_at>?); ${lastTerm}`,
    );
    expect(planOf('SELECT prefix FROM lanes WHERE account_id = 1')).toBe(
      'SEARCH lanes USING COVERING INDEX lanes_of_account (account_id=?)',
    );
    expect(pageOf({ state: 'failed', prefix: 'a' })).toBe(
      `SEARCH deliveries USING INDEX by_state (state=?); ${lastTerm}`,
    );
  });

  test('refuses a file of a newer version with what to do', async () => {
    const path = join(temporaryFolder(), 'deliveries.db');
    await openSqliteDeliveryQueue({ path, clock: new FakeClock() }).close();
    const db = new DatabaseSync(path);
    db.exec('PRAGMA user_version = 99');
    db.close();
    expect(() => openSqliteDeliveryQueue({ path, clock: new FakeClock() })).toThrow(/newer program/);
  });
});
