import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { erasureOf } from '../../../../src/records/project-event.ts';
import { keyIssued, opened, webhookSet } from '../../../support/accounts/account-samples.ts';
import { newDelivery } from '../../../support/deliveries/deliveries.ts';
import { listed } from '../../../support/deliveries/listed.ts';
import { cellsOf, commandLine } from '../../../support/service/command-line.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { confirmed, voided } from '../../../support/transactions/e2e-samples.ts';
import { rowIn } from '../../../support/transactions/row-in.ts';

const AFTER_URL = { created_at: '2026-09-03T08:00:00.000Z' };
const guessed = { type: 'TransactionGuessed', data: { transaction_id: 3 } };

describe('fuel projection', () => {
  test('status prints a line for each follower, and a document with --json', async () => {
    const { fuel, done, append } = commandLine();
    await append('transaction-1', [confirmed(1)]);
    const { position } = await done('projection', 'rebuild', 'transactions');
    const [accounts, view, deliveries, notices] = await done('projection', 'status');
    expect(accounts).toMatchObject({ name: 'accounts', position: 0, parked: 0, holder: null });
    const none = { lag_seconds: 0, lag_events: 0, parked: 0, holder: null };
    expect([view, notices]).toEqual([
      { ...none, name: 'transactions', position },
      { ...none, name: 'notices', position: 0 },
    ]);
    expect(deliveries).toMatchObject({ name: 'deliveries', position: 0, lag_events: 1 });
    expect(cellsOf((await fuel('projection', 'status')).stdout)).toEqual([
      ['Name', 'Position', 'Lag', 'Lag events', 'Parked'],
      ['accounts', '0', expect.stringMatching(/^\d+ s$/), expect.any(String), '0'],
      ['transactions', `${position}`, '0 s', '0', '0'],
      ['deliveries', '0', expect.stringMatching(/^\d+ s$/), '1', '0'],
      ['notices', '0', '0 s', '0', '0'],
    ]);
  });

  test('rebuild serves what the events call for, and records the reason', async () => {
    const { fuel, append, withEngines } = commandLine();
    await append('transaction-1', [confirmed(1)]);
    const rebuild = ['projection', 'rebuild', 'transactions'];
    expect((await fuel(...rebuild)).stdout).toMatch(/^View +transactions\nPosition +\d+\nServed +yes\n/);
    await withEngines((engines) => engines.view().replace(1, [erasureOf(1)]));
    expect((await fuel(...rebuild, '--reason', 'a doubt')).code).toBe(0);
    expect(await withEngines((engines) => rowIn(engines.view(), 1))).toMatchObject({ id: 1 });
    expect((await fuel('audit', '--type', 'ViewRebuilt')).stdout).toContain('a doubt');
  });

  test('parked lists and retries what could not be applied, and names what is not parked', async () => {
    const { fuel, done, append } = commandLine();
    await append('transaction-3', [guessed, confirmed(3)]);
    await done('projection', 'rebuild', 'transactions');
    const { position, reason, parked_at, ...event } = await done('projection', 'parked');
    expect(event).toEqual({
      follower: 'transactions',
      stream: 'transaction-3',
      revision: 0,
      type: 'TransactionGuessed',
    });
    expect(cellsOf((await fuel('projection', 'parked', '--personal')).stdout)[1]).toEqual([
      'transactions',
      String(position),
      'transaction-3',
      '0',
      'TransactionGuessed',
      ...[reason, parked_at],
    ]);
    const retry = ['projection', 'parked', 'retry'];
    expect(await fuel(...retry, String(position), '--json')).toMatchObject({
      code: 1,
      json: { retried: 1, still_parked: 1 },
    });
    expect((await fuel(...retry, '--all')).stdout).toBe('Retried       1\nStill parked  1\n');
    expect(await fuel(...retry, '99')).toMatchObject({
      code: 1,
      stderr: 'fuel: No event is parked at position 99. See `fuel projection parked`\n',
    });
  });
});

describe('fuel verify view', () => {
  test('names each difference, ends with 1 while one is left, repairs on request, and counts what is late', async () => {
    const { fuel, done, append, withEngines } = commandLine();
    await append('transaction-1', [confirmed(1)]);
    await append('transaction-2', [confirmed(2, { account_id: 8 })]);
    const { position } = await done('projection', 'rebuild', 'transactions');
    await append('transaction-3', [confirmed(3)]);
    await withEngines((engines) => engines.view().replace(1, [erasureOf(1)]));
    const late = `view: 1 events behind the log, so it was judged up to position ${position}\n`;
    const verify = async (...options: readonly string[]) => {
      const { code, json, stderr } = await fuel('verify', 'view', '--json', ...options);
      return [code, json, stderr];
    };
    const wrong = `${late}view: transaction 1 is missing\n`;
    expect(await verify()).toEqual([1, { view: { checked: 2, differences: 1 } }, wrong]);
    expect(await verify('--account', '8')).toEqual([0, { view: { checked: 1, differences: 0 } }, late]);
    const right = { view: { checked: 2, differences: 0 } };
    expect(await verify('--repair')).toEqual([0, right, `${wrong}view: repaired 1 of 1\n`]);
    expect(await verify()).toEqual([0, right, late]);
  });
});

describe('a view that was not made from this store', () => {
  test('is named by status and verify, also if the store was longer then', async () => {
    const { fuel, done, withEngines } = commandLine();
    await done('projection', 'rebuild', 'transactions');
    const own = await withEngines(async (engines) => (await engines.view().checkpoint())?.storeId ?? '');
    for (const [storeId, message] of [
      ['another', /was made from event store another/],
      [own, /stands at position 1000000 and the event store ends at/],
    ] as const) {
      await withEngines(async (engines) => {
        const { generation } = await engines.view().reset(storeId, 0);
        await engines.view().apply([], { generation, position: 1_000_000 });
      });
      for (const args of [
        ['projection', 'status'],
        ['verify', 'view'],
      ]) {
        const { code, stderr } = await fuel(...args);
        expect([args, code, stderr]).toEqual([args, 1, expect.stringMatching(message)]);
      }
    }
  });
});

describe('fuel verify deliveries', () => {
  const counts = { owed: 0, delivered: 0, pending: 0, failed: 0, withdrawn: 0, not_owed: {} };

  async function start() {
    const cli = commandLine();
    await cli.account(opened(), keyIssued(), webhookSet());
    await cli.withEngines((engines) => engines.queue().logId()); // the log begins before what it is held against
    await cli.append('transaction-1', [confirmed(1, AFTER_URL)], Date.now() + 1_000);
    return cli;
  }

  test('names what is missing and what is surplus in the range given, and stores what is missing on request', async () => {
    const { fuel, withEngines } = await start();
    const surplus = newDelivery(9, { createdAtMs: Date.now(), occurredAtMs: Date.now() + 1_000 });
    await withEngines((engines) => engines.queue().enqueue([surplus]));
    const found = await fuel('verify', 'deliveries', '--json');
    const judged = { ...counts, owed: 1, missing: 1, surplus: 1, not_judged: 0 };
    expect([found.code, found.json]).toEqual([1, { deliveries: judged }]);
    expect(found.stderr.trim().split('\n').sort()).toEqual(
      [
        expect.stringMatching(/^deliveries: \S+ of transaction 1 to key abcdefghij is missing$/),
        `deliveries: ${surplus.id} of transaction 9 to key ${surplus.prefix} is surplus`,
      ].sort(),
    );
    const repaired = await fuel('verify', 'deliveries', '--repair', '--json');
    expect(repaired.json).toEqual({ deliveries: { ...judged, missing: 0, pending: 1 } });
    expect(repaired.stderr).toContain('deliveries: stored 1 that were missing\n');
    expect(repaired.code).toBe(1); // what is surplus is not removed
    for (const [owed, ...range] of [
      [0, '--since', '2100-01-01T00:00:00Z'],
      [0, '--until', '2000-01-01T00:00:00Z'],
    ] as const)
      expect((await fuel('verify', 'deliveries', '--json', ...range)).json.deliveries.owed).toBe(owed);
  });

  test('says why what is not owed is not, by count, and one by one where that is asked for', async () => {
    const { fuel, account, append } = await start();
    const others = ['klmnopqrst', 'uuuuuuuuuu'].map((prefix) => ({ prefix }));
    await account(...others.map(keyIssued), webhookSet(others[0]));
    await account({ type: 'KeySwitchedOff', data: { account_id: 7, ...others[0] } } as never);
    for (const id of [2, 3])
      await append(`transaction-${id}`, [confirmed(id, AFTER_URL)], Date.now() + 1_000);
    await fuel('verify', 'deliveries', '--repair');
    const { code, json, stderr } = await fuel('verify', 'deliveries', '--explain', '--json');
    expect([code, json.deliveries.not_owed]).toEqual([
      0,
      { 'the key is switched off': 2, 'the key has no webhook': 2 },
    ]);
    expect(stderr.trim().split('\n').sort()).toEqual([
      'deliveries: transaction 2 is not owed to key klmnopqrst: the key is switched off',
      'deliveries: transaction 2 is not owed to key uuuuuuuuuu: the key has no webhook',
      'deliveries: transaction 3 is not owed to key klmnopqrst: the key is switched off',
      'deliveries: transaction 3 is not owed to key uuuuuuuuuu: the key has no webhook',
    ]);
    const text = await fuel('verify', 'deliveries');
    expect([text.stderr, text.stdout]).toEqual([
      '',
      expect.stringMatching(/^ +The key is switched off +2$/m),
    ]);
    expect((await fuel('verify', 'view', '--explain')).code).toBe(2);
  });

  test('without a name goes with the view, of which a difference counts as well', async () => {
    const { fuel, withEngines, done } = await start();
    await done('projection', 'rebuild', 'transactions');
    await fuel('verify', 'deliveries', '--repair');
    const both = await fuel('verify', '--json');
    expect([both.code, Object.keys(both.json)]).toEqual([0, ['accounts', 'view', 'deliveries']]);
    await withEngines((engines) => engines.view().replace(1, [erasureOf(1)]));
    expect((await fuel('verify')).code).toBe(1);
    expect((await fuel('verify', 'deliveries')).code).toBe(0);
  });

  test('of a log that was lost is refused, and rebuilt as a whole alone, with what may be seen twice', async () => {
    const { fuel, append, withEngines } = await start();
    const started_at = new Date(Date.now() - 60_000).toISOString();
    await append('operations', [
      { type: 'StoreNamed', data: { store_id: '6b0f5f0c-3b7a-4a54-8a3c-6a1c2a4fd001' } },
      { type: 'DeliveryLogStarted', data: { log_id: 'lost', started_at } },
    ]);
    await append('transaction-2', [confirmed(2, AFTER_URL), voided(2)]);
    for (const args of [[], ['--repair']]) {
      expect(await fuel('verify', 'deliveries', ...args)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^fuel: The delivery log lost is gone, .*--resend-unknown/),
      });
    }
    for (const range of [
      ['--account', '7'],
      ['--since', started_at],
      ['--until', started_at],
    ]) {
      expect(await fuel('verify', 'deliveries', '--repair', '--resend-unknown', ...range)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('rebuilt as a whole'),
      });
    }
    expect(await withEngines((engines) => listed(engines.queue()))).toEqual([]);
    const rebuilt = await fuel('verify', 'deliveries', '--repair', '--resend-unknown', '--json');
    expect(rebuilt.stderr).toContain(
      'the log was lost, so receivers may see 1 deliveries for the second time\n',
    );
    expect(rebuilt.stderr).not.toContain('is missing');
    expect([rebuilt.code, rebuilt.json.deliveries]).toMatchObject([
      0,
      { pending: 1, withdrawn: 1, missing: 0 },
    ]);
    expect((await fuel('verify', 'deliveries')).code).toBe(0);
  });
});

describe('fuel store backup', () => {
  test('records that it was made once the copy is whole, in the store and not in the copy', async () => {
    const { fuel, account, eventsOf } = commandLine();
    await account(opened());
    const taken = temporaryFolder();
    writeFileSync(join(taken, 'other'), '');
    expect((await fuel('store', 'backup', taken)).code).toBe(1);
    const before = (await eventsOf('operations')).length;
    const folders = [join(temporaryFolder(), 'one'), join(temporaryFolder(), 'two')];
    for (const folder of folders)
      expect((await fuel('store', 'backup', folder, '--actor', 'Ada')).code).toBe(0);
    const made = (await eventsOf('operations')).slice(before);
    expect(made.map(({ type }) => type)).toEqual(['BackupMade', 'BackupMade']);
    expect(made[0]).toMatchObject({ metadata: { actor: 'Ada', command: 'fuel store backup' } });
    for (const folder of folders) expect(existsSync(join(folder, 'SHA256SUMS'))).toBe(true);
    const [first] = made.map(({ data }) => (data as { events_up_to: number }).events_up_to);
    const backup = JSON.parse(readFileSync(join(folders[0] ?? '', 'backup.json'), 'utf8'));
    expect(backup.events_up_to).toBe(first);
  });
});
