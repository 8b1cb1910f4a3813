import type { AccountCommand } from '../../../src/domain/account-commands.ts';
import type { AccountEvent, AccountEventType, Ciphertext } from '../../../src/domain/account-events.ts';

type DataOf<T extends AccountEventType> = Extract<AccountEvent, { type: T }>['data'];

export const PREFIX = 'abcdefghij';
export const SECRET: Ciphertext = {
  master_key_id: '0a1b2c3d',
  nonce: 'bg==',
  ciphertext: 'Yw==',
  tag: 'dA==',
};
/** The same secret, encrypted with another master key. */
export const REWRAPPED: Ciphertext = { ...SECRET, master_key_id: '4e5f6071', nonce: 'cmV3' };
export const KEY = { accountId: 7, prefix: PREFIX } as const;

/** Events of account 7 and its key `abcdefghij`, with any member replaced. */
export const opened = (name = 'Harbour Freight', accountId = 7): AccountEvent => ({
  type: 'AccountOpened',
  data: { account_id: accountId, name },
});

export const groupAdded = (groupId = 3, name = 'Depots'): AccountEvent => ({
  type: 'CorporateGroupAdded',
  data: { account_id: 7, corporate_group_id: groupId, name },
});

export const corporateAdded = (groupId: number | null = null): AccountEvent => ({
  type: 'CorporateAdded',
  data: { account_id: 7, corporate_id: 31, name: 'North Depot', corporate_group_id: groupId },
});

export const profileSet = (from: string, to: string | null, profile = 'standard'): AccountEvent => ({
  type: 'ChargingProfileSet',
  data: { account_id: 7, profile, from, to },
});

export const keyIssued = (overrides: Partial<DataOf<'KeyIssued'>> = {}): AccountEvent => ({
  type: 'KeyIssued',
  data: {
    account_id: 7,
    prefix: PREFIX,
    environment: 'staging',
    label: null,
    secret_sha256: '00'.repeat(32),
    allow_list: [],
    rate_limit: 60,
    driver_mobile: false,
    ...overrides,
  },
});

export const webhookSet = (overrides: Partial<DataOf<'WebhookUrlSet'>> = {}): AccountEvent => ({
  type: 'WebhookUrlSet',
  data: {
    account_id: 7,
    prefix: PREFIX,
    url: 'https://example.com/hook',
    set_at: '2026-09-01T00:00:00.000Z',
    secret: SECRET,
    ...overrides,
  },
});

export const secretRewrapped = (secret: Ciphertext = REWRAPPED): AccountEvent => ({
  type: 'WebhookSecretRewrapped',
  data: { account_id: 7, prefix: PREFIX, secret },
});

export const rateSet = (perSecond: number | null = 20): AccountEvent => ({
  type: 'WebhookRateSet',
  data: { account_id: 7, prefix: PREFIX, per_second: perSecond },
});

const FAILURES = { failed_in_a_row: 50, failing_since: null, last_answers: [] };

type KeyEventType =
  | 'KeySwitchedOff'
  | 'KeySwitchedOn'
  | 'WebhookRemoved'
  | 'WebhookEnabled'
  | 'WebhookDisabled'
  | 'WebhookFailing';

/** An event about the key that needs no further data. */
export function onKey(type: KeyEventType): AccountEvent {
  const data = { account_id: 7, prefix: PREFIX };
  if (type === 'WebhookDisabled') return { type, data: { ...data, reason: '50 failed', ...FAILURES } };
  if (type === 'WebhookFailing') return { type, data: { ...data, ...FAILURES } };
  return { type, data };
}

/** The command that issues a production key. */
export const issueKey = (overrides: object = {}): AccountCommand => ({
  type: 'IssueKey',
  ...KEY,
  environment: 'production',
  label: 'ERP',
  secretSha256: 'ff'.repeat(32),
  allowList: ['203.0.113.0/24'],
  rateLimit: 60,
  driverMobile: true,
  ...overrides,
});

/** The command that sets the webhook's URL. */
export const setWebhookUrl = (url: string): AccountCommand => ({
  type: 'SetWebhookUrl',
  ...KEY,
  url,
  atMs: Date.parse('2026-09-05T00:00:00Z'),
  newSecret: SECRET,
});
