import { hash } from 'node:crypto';
import type { TransactionEvent } from '../../domain/transaction-events.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { generateTransactions } from '../sample/generator.ts';
import { type SampleAccount, sampleDirectory } from '../sample/sample-directory.ts';

const ACCOUNT_ID = 7;
const COUNT = 2_000;
const DAYS = 90;
/** Fixed, so that a seed stands for the same transactions whenever it is used. */
const END_MS = Date.UTC(2026, 9, 1);
const PREFIX_LENGTH = 10;
const SECRET_LENGTH = 43;

/** What a mock serves: the same for the same seed. */
export interface MockData {
  readonly account: SampleAccount;
  readonly key: string;
  readonly prefix: string;
  /** Lower-case hex. */
  readonly secretSha256: string;
  readonly webhookSecret: string;
  readonly events: readonly TransactionEvent[];
  /** Of the transactions that are neither voided nor cancelled, in the order of `created_at`. */
  readonly shownIds: readonly number[];
  /** All were created in this time. */
  readonly fromMs: number;
  readonly toMs: number;
}

export function mockData(seed: number): MockData {
  const [account] = sampleDirectory([ACCOUNT_ID]);
  if (account === undefined) throw new RangeError('there is no sample account');
  const events = [
    ...generateTransactions({ seed, count: COUNT, days: DAYS, endMs: END_MS, accountIds: [ACCOUNT_ID] }),
  ];
  const prefix = textOf(`${seed} prefix`, PREFIX_LENGTH).toLowerCase();
  const secret = textOf(`${seed} key`, SECRET_LENGTH);
  return {
    account,
    key: `svc_test_${prefix}_${secret}`,
    prefix,
    secretSha256: hash('sha256', secret),
    webhookSecret: textOf(`${seed} webhook`, SECRET_LENGTH),
    events,
    shownIds: shownIds(events),
    fromMs: END_MS - DAYS * DAY_MS,
    toMs: END_MS,
  };
}

/** Letters and digits that follow from the seed: what guards invented data may be known. */
function textOf(seed: string, length: number): string {
  const digits = hash('sha512', `fuel mock ${seed}`, 'base64').replaceAll(/[^A-Za-z0-9]/g, '');
  return digits.slice(0, length);
}

function shownIds(events: readonly TransactionEvent[]): number[] {
  const createdAt = new Map<number, string>();
  for (const { data } of events) {
    if ('created_at' in data) createdAt.set(data.transaction_id, data.created_at);
    else createdAt.delete(data.transaction_id);
  }
  const inOrder = [...createdAt].toSorted(([a, at], [b, bt]) => (at < bt ? -1 : at > bt ? 1 : a - b));
  return inOrder.map(([id]) => id);
}
