import { expect, test } from 'vitest';
import { MasterKeys } from '../../../src/accounts/master-key.ts';
import type { AccountKey } from '../../../src/domain/account.ts';
import { createRequests } from '../../../src/push/message/envelope.ts';
import type { ClaimedDelivery } from '../../../src/push/queue/delivery.ts';
import { createPresigner } from '../../../src/records/presign.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { foldAccount } from '../../support/accounts/evolve.ts';
import { newDelivery } from '../../support/deliveries/deliveries.ts';

const SECRET = 'S'.repeat(43);
const URL = 'https://example.com/hook';
const NOW_MS = Date.parse('2026-09-03T08:00:00.000Z');
const masterKeys = new MasterKeys([Buffer.alloc(32, 1), Buffer.alloc(32, 2)]);
const presigner = createPresigner({
  endpoint: 'https://photos.example',
  region: 'us-east-1',
  bucket: 'fuel',
  accessKeyId: 'A',
  secretAccessKey: 'S',
});

/** A key whose webhook's secret was encrypted by these master keys for this prefix. */
function keyWith({ keys = masterKeys, secret = SECRET, prefix = PREFIX } = {}): AccountKey {
  const encrypted = keys.encryptSecret({ prefix, secret });
  const events = [opened(), keyIssued(), webhookSet({ secret: encrypted })];
  const key = foldAccount(events.map((event) => ({ event, atMs: 0 })))?.keys.get(PREFIX);
  if (key === undefined) throw new Error('no key');
  return key;
}

const delivery: ClaimedDelivery = {
  ...newDelivery(501, { prefix: PREFIX, createdAtMs: NOW_MS - 60_000 }),
  cycle: 1,
  attemptNumber: 2,
  leaseToken: 'x',
};

test('each attempt has the same body and id; only its signature and the image URLs are new', () => {
  const requestFor = createRequests(masterKeys, presigner);
  const key = keyWith();
  const [first, second] = [NOW_MS, NOW_MS + 30_000].map((atMs) =>
    requestFor(delivery, { url: URL, key, atMs }),
  );
  if (first === undefined || second === undefined) throw new Error('no requests');
  const parsed = [first, second].map(({ body }) => JSON.parse(body));
  expect(parsed[0]).toMatchObject({
    id: delivery.id,
    type: 'transaction.confirmed',
    created_at: '2026-09-03T07:59:00.000Z',
    data: { transaction: { images: { expires_at: '2026-09-04T08:00:00.000Z' } } },
  });
  expect(parsed[1].data.transaction.images.expires_at).toBe('2026-09-04T08:00:30.000Z');
  const withoutImages = parsed.map(({ data, ...envelope }) => ({
    ...envelope,
    transaction: { ...data.transaction, images: null },
  }));
  expect(withoutImages[0]).toEqual(withoutImages[1]);
  const signedAt = [first, second].map(
    ({ headers }) => /^t=(\d+),/.exec(headers['X-Service-Signature'] ?? '')?.[1],
  );
  expect(signedAt).toEqual([String(NOW_MS / 1_000), String(NOW_MS / 1_000 + 30)]);
});

test('a request goes to the given URL and is signed with the decrypted secret', () => {
  const requestFor = createRequests(masterKeys, presigner);
  const signed = (key: AccountKey) => {
    const { url, headers } = requestFor(delivery, { url: URL, key, atMs: NOW_MS });
    expect(url).toBe(URL);
    return headers['X-Service-Signature'];
  };
  const before = signed(keyWith());
  expect(signed(keyWith())).toBe(before);
  const rewrapped = keyWith({ keys: new MasterKeys([Buffer.alloc(32, 2)]) });
  expect(signed(rewrapped)).toBe(before);
  expect(signed(keyWith({ secret: 'T'.repeat(43) }))).not.toBe(before);
});

test('a secret that cannot be decrypted, or that there is none of, is an error and not an unsigned request', () => {
  const requestFor = createRequests(masterKeys, presigner);
  const ask = (key: AccountKey) => () => requestFor(delivery, { url: URL, key, atMs: NOW_MS });
  const unreadable = expect.objectContaining({ code: 'SECRET_UNREADABLE' });
  expect(ask(keyWith({ keys: new MasterKeys([Buffer.alloc(32, 3)]) }))).toThrow(unreadable);
  expect(ask(keyWith({ prefix: 'bbbbbbbbbb' }))).toThrow(unreadable);
  expect(ask({ ...keyWith(), webhookSecret: null })).toThrow(unreadable);
});
