import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { projectTransaction } from '../../../projections/transactions.ts';
import { type GeneratorOptions, generateTransactions } from '../../../src/customers/sample/generator.ts';
import { sampleAccount } from '../../../src/customers/sample/sample-directory.ts';
import { faultsOf, schemaOf } from '../../../src/domain/events.ts';
import {
  evolveTransaction,
  judgeTransaction,
  NO_TRANSACTION,
  type TransactionState,
} from '../../../src/domain/transaction.ts';
import type { TransactionEvent } from '../../../src/domain/transaction-events.ts';
import { parseDateTime } from '../../../src/domain/values/date-time.ts';

type Recorded = Extract<TransactionEvent, { data: { created_at: string } }>;

const COUNT = 10_000;
const options: GeneratorOptions = {
  seed: 1,
  count: COUNT,
  days: 30,
  endMs: Date.UTC(2026, 8, 30),
  accountIds: [7, 8, 9],
};
const events = [...generateTransactions(options)];
const recorded = events.filter((event): event is Recorded => 'created_at' in event.data);
const withdrawn = events.filter((event) => !('created_at' in event.data));
const confirmed = recorded.filter((event) => event.type === 'TransactionConfirmed');
const refunds = confirmed.filter((event) => event.data.correction_reference_id !== null);
const fills = recorded.filter((event) => event.data.correction_reference_id === null);
const byId = new Map(recorded.map((event) => [event.data.transaction_id, event]));

/** Scales a decimal to an integer: `"-1.5"` with 6 decimals is -1500000n. */
function scaled(decimal: string, decimals: number): bigint {
  const [whole = '', fraction = ''] = decimal.split('.');
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}

function timeOf(event: TransactionEvent): number {
  const { data } = event;
  if ('voided_at' in data) return parseDateTime(data.voided_at) ?? Number.NaN;
  if ('cancelled_at' in data) return parseDateTime(data.cancelled_at) ?? Number.NaN;
  return parseDateTime(data.confirmed_at ?? data.created_at) ?? Number.NaN;
}

describe('sample transactions', () => {
  it('are the same for the same seed, and others for another', () => {
    const text = (seed: number): string =>
      JSON.stringify([...generateTransactions({ ...options, count: 200, seed })]);
    expect(text(1)).toBe(text(1));
    expect(text(2)).not.toBe(text(1));
  });

  it('fit their schemas as JSON, every one', () => {
    const faults = events.flatMap((event) => {
      const schema = schemaOf(event.type);
      return schema === undefined ? [event.type] : faultsOf(schema, JSON.parse(JSON.stringify(event.data)));
    });
    expect(faults).toEqual([]);
  });

  it('follow each other as the log may have them, and are all rendered', () => {
    const states = new Map<number, TransactionState>();
    const outcomes = new Set<string>();
    for (const event of events) {
      const id = event.data.transaction_id;
      const before = states.get(id) ?? NO_TRANSACTION;
      outcomes.add(judgeTransaction(before, event).kind);
      states.set(id, evolveTransaction(before, event));
      expect(() => projectTransaction(event.type, event.data, 0)).not.toThrow();
    }
    expect([...outcomes]).toEqual(['applied']);
  });

  it('are as many as asked for, with ascending ids, refunds included', () => {
    const ids = recorded.map((event) => event.data.transaction_id);
    expect(ids).toHaveLength(COUNT);
    expect(ids.every((id, n) => n === 0 || id > (ids[n - 1] ?? 0))).toBe(true);
  });

  it('lie within the days asked for, and are recorded in order of time', () => {
    const startMs = options.endMs - options.days * 86_400_000;
    const createdMs = recorded.map((event) => parseDateTime(event.data.created_at) ?? Number.NaN);
    expect(Math.min(...createdMs)).toBeGreaterThanOrEqual(startMs);
    expect(Math.max(...events.map(timeOf))).toBeLessThanOrEqual(options.endMs);
    // An external transaction has no time of confirmation. Only its creation, a little earlier, is known.
    const times = events.filter((event) => event.type !== 'ExternalTransactionRecorded').map(timeOf);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it('are voided or cancelled once at most, later, in the same account', () => {
    const seen = new Set<number>();
    const gone = new Set<number>();
    for (const event of events) {
      const { transaction_id, account_id } = event.data;
      if (!withdrawn.includes(event)) {
        seen.add(transaction_id);
        continue;
      }
      expect(seen.has(transaction_id) && !gone.has(transaction_id)).toBe(true);
      gone.add(transaction_id);
      const original = byId.get(transaction_id);
      expect(original?.data.account_id).toBe(account_id);
      expect(timeOf(event)).toBeGreaterThan(parseDateTime(original?.data.created_at ?? '') ?? Number.NaN);
    }
  });

  it('are refunded as negative transactions that name an earlier confirmed one of the account', () => {
    for (const { data } of refunds) {
      const original = byId.get(data.correction_reference_id ?? -1);
      expect(original?.type).toBe('TransactionConfirmed');
      expect(original?.data.transaction_id).toBeLessThan(data.transaction_id);
      expect(original?.data.account_id).toBe(data.account_id);
      expect(data.fuel.amount).toBe(`-${original?.data.fuel.amount}`);
      expect(data.fees.total_amount).toBe(`-${original?.data.fees.total_amount}`);
    }
  });

  it('have amounts that are exact: litres × price rounded, and totals before rounding', () => {
    for (const { data } of fills) {
      const product = scaled(data.fuel.liters, 2) * scaled(data.fuel.price_per_liter, 2);
      expect(scaled(data.fuel.amount, 2)).toBe((product + 50n) / 100n);
      const shown =
        scaled(data.fuel.amount, 6) + scaled(data.fees.total_fees, 6) + scaled(data.fees.total_vat, 6);
      const apart = scaled(data.fees.total_amount, 6) - shown;
      expect(apart >= -10_000n && apart <= 10_000n).toBe(true);
    }
    expect(new Set(recorded.map(({ data }) => data.fees.total_amount.split('.')[1]?.length))).toContain(6);
  });

  it('name only accounts, groups and corporates of the sample directory', () => {
    const known = new Set(
      options.accountIds
        .map(sampleAccount)
        .flatMap((account) =>
          account.corporates.map(({ id, name, group }) => JSON.stringify([account.id, { id, name }, group])),
        ),
    );
    const named = new Set(
      recorded.map(({ data }) => JSON.stringify([data.account_id, data.corporate, data.corporate_group])),
    );
    expect([...named].sort()).toEqual([...known].sort());
  });
});

describe('the sample directory', () => {
  it('has groups with corporates and a corporate without a group, with ids that no accounts share', () => {
    const accounts = [1, 7, 8, 9, 123_456].map(sampleAccount);
    for (const { groups, corporates } of accounts) {
      expect(corporates.some((corporate) => corporate.group === null)).toBe(true);
      expect(corporates.some((corporate) => corporate.group?.id === groups[0]?.id)).toBe(true);
      for (const { group } of corporates) if (group !== null) expect(groups).toContainEqual(group);
    }
    const ids = accounts.flatMap((account) => account.corporates.map((corporate) => corporate.id));
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('the script that writes sample transactions', () => {
  const script = join(import.meta.dirname, '../../../tools/demo/generate.ts');
  const run = (...args: string[]) => promisify(execFile)(process.execPath, [script, ...args]);

  it('writes the generated events, one a line', async () => {
    const { stdout } = await run(...'--count 50 --days 2 --seed 3 --end 2026-09-30T00:00:00Z'.split(' '));
    const same = generateTransactions({ ...options, seed: 3, count: 50, days: 2 });
    expect(stdout).toBe([...same].map((event) => `${JSON.stringify(event)}\n`).join(''));
  });

  it('says what it takes with --help, and ends with 2 and the name of an option that was used wrongly', async () => {
    expect((await run('--help')).stdout).toContain('--accounts');
    const wrong = [
      ['--count', 'many'],
      ['--days', '0'],
      ['--end', '2026-02-30T00:00:00Z'],
      ['--accounts', ''],
      ['--colour', 'red'],
    ] as const;
    await Promise.all(
      wrong.map(([option, value]) =>
        expect(run(option, value)).rejects.toMatchObject({
          code: 2,
          stderr: expect.stringContaining(option),
        }),
      ),
    );
  });
});
