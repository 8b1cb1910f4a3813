import { hash } from 'node:crypto';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { generateTransactions } from '../sample/generator.ts';
import { sampleAccount } from '../sample/sample-directory.ts';

const ACCOUNT_ID = 7;
const COUNT = 2_000;
const DAYS = 90;
const PREFIX_LENGTH = 10;
const SECRET_LENGTH = 43;

export type MockData = ReturnType<typeof mockData>;

/** The data that a mock serves. The same seed gives the same data, apart from the times, which lead up to `toMs`. */
export function mockData(seed: number, toMs: number) {
  const sample = { seed, count: COUNT, days: DAYS, endMs: toMs, accountIds: [ACCOUNT_ID] };
  const events = [...generateTransactions(sample)];
  const shown = new Set<number>();
  for (const { data } of events) {
    if ('created_at' in data) shown.add(data.transaction_id);
    else shown.delete(data.transaction_id);
  }
  const prefix = textOf(`${seed} prefix`, PREFIX_LENGTH).toLowerCase();
  const secret = textOf(`${seed} key`, SECRET_LENGTH);
  return {
    account: sampleAccount(ACCOUNT_ID),
    key: `svc_test_${prefix}_${secret}`,
    prefix,
    secretSha256: hash('sha256', secret),
    webhookSecret: textOf(`${seed} webhook`, SECRET_LENGTH),
    events,
    /** The ids of the transactions that are neither voided nor cancelled, in the order of `created_at`. */
    shownIds: [...shown],
    /** All transactions were created at or after this time, and before `toMs`. */
    fromMs: toMs - DAYS * DAY_MS,
    toMs,
  };
}

/** Letters and digits derived from the seed. They may be known, since they only guard invented data. */
function textOf(seed: string, length: number): string {
  const digits = hash('sha512', `fuel mock ${seed}`, 'base64').replaceAll(/[^A-Za-z0-9]/g, '');
  return digits.slice(0, length);
}
