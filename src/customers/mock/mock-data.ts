import { hash } from 'node:crypto';
import type { AccountCommand } from '../../domain/account-commands.ts';
import { DAY_MS } from '../../domain/values/date-time.ts';
import { FIRST_ID, generateTransactions, type Recorded } from '../sample/generator.ts';
import { openingCommands, PROFILE, sampleAccount } from '../sample/sample-directory.ts';

const ACCOUNT_ID = 7;
const COUNT = 2_000;
const DAYS = 90;
const RATE_LIMIT = 60; // as for a key that is issued without --rate-limit
const ACCESS_MS = 365 * DAY_MS;
const PREFIX_LENGTH = 10;
const SECRET_LENGTH = 43;

export type MockData = ReturnType<typeof mockData>;

/** The data that a mock serves. The same seed gives the same data, apart from the times, which lead up to `toMs`. */
export function mockData(seed: number, toMs: number) {
  const sample = { seed, count: COUNT, days: DAYS, endMs: toMs, accountIds: [ACCOUNT_ID] };
  const events = [...generateTransactions(sample)];
  const shown = new Map<number, Recorded>();
  for (const event of events) {
    if ('created_at' in event.data) shown.set(event.data.transaction_id, event as Recorded);
    else shown.delete(event.data.transaction_id);
  }
  return {
    account: sampleAccount(ACCOUNT_ID),
    ...mockKey(`${seed}`),
    second: mockKey(`${seed} second`),
    events,
    /** The transactions that are neither voided nor cancelled, by id, in the order of `created_at`. */
    shown,
    nextId: FIRST_ID + COUNT,
    /** All transactions were created at or after this time, and before `toMs`. */
    fromMs: toMs - DAYS * DAY_MS,
    toMs,
  };
}

function mockKey(seed: string) {
  const prefix = textOf(`${seed} prefix`, PREFIX_LENGTH).toLowerCase();
  const secret = textOf(`${seed} key`, SECRET_LENGTH);
  return {
    key: `svc_test_${prefix}_${secret}`,
    prefix,
    secretSha256: hash('sha256', secret),
    webhookSecret: textOf(`${seed} webhook`, SECRET_LENGTH),
  };
}

/** The commands that open the account, with access for a year, and issue both keys. */
export function mockCommands({ account, toMs, second, ...first }: MockData): AccountCommand[] {
  const accountId = account.id;
  const keys = [first, second].map(({ prefix, secretSha256 }): AccountCommand => {
    const terms = { accountId, label: 'mock', rateLimit: RATE_LIMIT, allowList: [], driverMobile: true };
    return { type: 'IssueKey', prefix, secretSha256, environment: 'staging', ...terms };
  });
  const profile = { accountId, profile: PROFILE, toMs: toMs + ACCESS_MS };
  return [...openingCommands(account, 0), { type: 'SetChargingProfile', ...profile }, ...keys];
}

/** Letters and digits derived from the seed. They may be known, since they only guard invented data. */
function textOf(seed: string, length: number): string {
  const digits = hash('sha512', `fuel mock ${seed}`, 'base64').replaceAll(/[^A-Za-z0-9]/g, '');
  return digits.slice(0, length);
}
