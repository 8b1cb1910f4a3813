import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Ledger } from '../../examples/ledger/ledger.ts';
import { parseExactly, type Transaction } from '../../examples/ledger/transaction.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { printedRecord } from '../support/transactions/printed-record.ts';
import { at, FakeService, OTHER_KEY } from './fake-service.ts';

const COUNT = 40;
const MONTH = { from: 0, to: 30 };
const other = { apiKey: OTHER_KEY };
const confirmed = { ...other, confirmKey: 'other' };
const OTHER_ACCOUNT = { corporate: { id: 99, name: 'Another account' } };

/** A service with this many transactions, on four pages. */
function serviceOf(firstId: number, count = COUNT): FakeService {
  const service = new FakeService().has(
    ...Array.from({ length: count }, (_, n) => [firstId + n, 1 + n / 10] as const),
  );
  service.pageSize = 10;
  return service;
}

/** A ledger in a file, and everything in it. */
function openLedger() {
  const file = join(temporaryFolder(), 'fuel.db');
  const ledger = new Ledger(file);
  const db = new DatabaseSync(file, { readOnly: true });
  onTestFinished(() => {
    db.close();
    ledger.close();
  });
  const all = (table: string) => db.prepare(`SELECT * FROM ${table}`).all();
  return {
    ledger,
    content: () => ({ transactions: all('transactions'), removed: all('removed') }),
    staged: () => all('staged').length,
  };
}

async function pulledLedger() {
  const opened = openLedger();
  const own = serviceOf(1);
  await own.sync(opened.ledger, MONTH);
  return { ...opened, own, before: opened.content() };
}

describe('a ledger that was pulled with one key', () => {
  test('is not touched with another key, which is not even used, and goes on with its own', async () => {
    const { ledger, content, own, before } = await pulledLedger();
    const foreign = serviceOf(1_000);
    await expect(foreign.sync(ledger, MONTH, other)).rejects.toThrow(
      'pulled with the key first, and API_KEY is other: if both are of the same account, run it with CONFIRM_KEY=other',
    );
    await expect(foreign.sync(ledger, MONTH, { ...other, confirmKey: 'yes' })).rejects.toThrow('CONFIRM_KEY');
    expect(foreign.urls).toEqual([]);
    expect(content()).toEqual(before);
    expect(await own.sync(ledger, MONTH)).toMatchObject({ added: 0, changed: 0, removed: 0 });
  });

  test('goes on with a new key of the same account once its prefix is confirmed, and then without', async () => {
    const { ledger, content, own, before } = await pulledLedger();
    for (const options of [confirmed, confirmed, other])
      expect(await own.sync(ledger, MONTH, options)).toMatchObject({ added: 0, changed: 0, removed: 0 });
    expect(content()).toEqual(before);
    await expect(own.sync(ledger, MONTH)).rejects.toThrow('CONFIRM_KEY=first');
    await expect(own.sync(ledger, MONTH, { confirmKey: 'other' })).rejects.toThrow('CONFIRM_KEY=first');
  });

  test('is not bound to a key that was never accepted', async () => {
    const { ledger } = openLedger();
    const service = serviceOf(1);
    service.failures.push(Response.json({ error: { code: 'INVALID_API_KEY' } }, { status: 401 }));
    await expect(service.sync(ledger, MONTH, other)).rejects.toThrow('INVALID_API_KEY');
    expect(await service.sync(ledger, MONTH)).toMatchObject({ added: COUNT });
  });

  test.each([
    ['other ids', 1_000, COUNT, /40 of 40 transactions .* disappeared: does API_KEY belong to the right/],
    [
      'the same ids',
      1,
      COUNT,
      /40 of 40 ids .* are now other transactions: does API_KEY belong to the right/,
    ],
    ['the same ids and many more', 1, 400, /40 of 40 ids .* are now other transactions/],
  ])(
    'keeps its content if the confirmed key is of an account with %s',
    async (_, firstId, count, message) => {
      const { ledger, content, staged, own, before } = await pulledLedger();
      const foreign = serviceOf(firstId, count);
      foreign.overrides = OTHER_ACCOUNT;
      for (let times = 1; times <= 2; times++) {
        await expect(foreign.sync(ledger, MONTH, confirmed)).rejects.toThrow(message);
        expect([content(), staged()]).toEqual([before, 0]);
      }
      const again = await own.sync(ledger, MONTH, { confirmKey: 'first' });
      expect(again).toMatchObject({ added: 0, changed: 0, removed: 0 });
      expect(content()).toEqual(before);
    },
  );

  test('keeps its content if other transactions have its ids, whatever may be removed', async () => {
    const { ledger, content, before } = await pulledLedger();
    const foreign = serviceOf(1);
    foreign.overrides = OTHER_ACCOUNT;
    const options = { ...confirmed, removeMuch: true };
    await expect(foreign.sync(ledger, MONTH, options)).rejects.toThrow('name a new file in DATABASE');
    expect(content()).toEqual(before);
  });

  test.each([1, 2, 3, 4])(
    'forgets what a wrong key had staged when it was killed after page %i',
    async (pages) => {
      const { ledger, content, staged, own, before } = await pulledLedger();
      const foreign = serviceOf(1_000, 50);
      foreign.failures.push(...Array.from({ length: pages }, () => undefined));
      foreign.failures.push(Response.json({}, { status: 403 }));
      await expect(foreign.sync(ledger, MONTH, confirmed)).rejects.toThrow('403');
      expect([content(), staged()]).toEqual([before, pages * 10]);
      own.urls.length = 0;
      await own.sync(ledger, MONTH, { confirmKey: 'first' });
      expect(own.urls[0]?.searchParams.has('cursor')).toBe(false);
      expect([content(), staged()]).toEqual([before, 0]);
    },
  );

  test('accepts records with other members than before: a key may show less, and fields may be added', async () => {
    const { ledger, own } = await pulledLedger();
    own.overrides = { driver: { id: 5, name: 'REDACTED', mobile_number: null } };
    expect(await own.sync(ledger, MONTH)).toMatchObject({ added: 0, changed: COUNT, removed: 0 });
    expect(await own.sync(ledger, MONTH)).toMatchObject({ added: 0, changed: 0, removed: 0 });
  });

  test('keeps what a webhook brought while a wrong key was in use', async () => {
    const { ledger, own } = await pulledLedger();
    await expect(serviceOf(1_000).sync(ledger, MONTH, confirmed)).rejects.toThrow('disappeared');
    ledger.receive('d1', parseExactly(printedRecord(500, { created_at: at(2) })) as Transaction);
    await own.sync(ledger, MONTH, { confirmKey: 'first' });
    expect(ledger.count()).toBe(COUNT + 1);
  });
});

describe('a sync whose account has an end of access', () => {
  test('returns it as the last page gave it', async () => {
    const service = serviceOf(1);
    service.accessEnds = at(90);
    expect(await service.sync(openLedger().ledger, MONTH)).toMatchObject({ accessEnds: at(90) });
  });
});
