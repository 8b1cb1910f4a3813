import { hash } from 'node:crypto';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { generateTransactions } from '../sample/generator.ts';
import { sampleAccount } from '../sample/sample-directory.ts';

const ACCOUNT_ID = 7;
const COUNT = 2_000;
const DAYS = 90;
/** Fixed, so that a seed stands for the same transactions whenever it is used. */
const END_MS = Date.UTC(2026, 9, 1);
const PREFIX_LENGTH = 10;
const SECRET_LENGTH = 43;

export type MockData = ReturnType<typeof mockData>;

/** What a mock serves: the same for the same seed. */
export function mockData(seed: number) {
  const sample = { seed, count: COUNT, days: DAYS, endMs: END_MS, accountIds: [ACCOUNT_ID] };
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
    /** Of the transactions that are neither voided nor cancelled, in the order of `created_at`. */
    shownIds: [...shown],
    /** All were created from here on, and before `toMs`. */
    fromMs: END_MS - DAYS * DAY_MS,
    toMs: END_MS,
  };
}

/** Letters and digits that follow from the seed: what guards invented data may be known. */
function textOf(seed: string, length: number): string {
  const digits = hash('sha512', `fuel mock ${seed}`, 'base64').replaceAll(/[^A-Za-z0-9]/g, '');
  return digits.slice(0, length);
}
