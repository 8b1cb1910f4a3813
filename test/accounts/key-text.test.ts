import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { generateKey, generateWebhookSecret, matches } from '../../src/accounts/key-text.ts';
import { parseKey } from '../support/accounts/parse-key.ts';

const secret = 'a'.repeat(43);
const environments = fc.constantFrom('production' as const, 'staging' as const);

test('a generated key reads back as its environment, its prefix and a secret that matches', () => {
  const reads = (environment: 'production' | 'staging') => {
    const generated = generateKey(environment);
    const parsed = parseKey(generated.key);
    expect(parsed).toMatchObject({ environment, prefix: generated.prefix });
    expect(matches(parsed?.secret ?? '', generated.secretSha256)).toBe(true);
  };
  fc.assert(fc.property(environments, reads));
});

test('production keys begin with svc_live_, staging keys with svc_test_', () => {
  expect(generateKey('production').key).toMatch(/^svc_live_[a-z0-9]{10}_[A-Za-z0-9]{43}$/);
  expect(generateKey('staging').key).toMatch(/^svc_test_[a-z0-9]{10}_[A-Za-z0-9]{43}$/);
});

test('a webhook secret is 43 letters and digits, another each time', () => {
  const secrets = Array.from({ length: 50 }, generateWebhookSecret);
  for (const one of secrets) expect(one).toMatch(/^[A-Za-z0-9]{43}$/);
  expect(new Set(secrets).size).toBe(50);
});

test('every character of the alphabet is about as likely as any other', () => {
  const counts = new Map<string, number>();
  const drawn = Array.from({ length: 2_000 }, generateWebhookSecret).join('');
  for (const character of drawn) counts.set(character, (counts.get(character) ?? 0) + 1);
  const expected = drawn.length / 62; // 1,387, with a standard deviation of 37
  expect(counts.size).toBe(62);
  for (const count of counts.values()) expect(Math.abs(count - expected)).toBeLessThan(300);
});

test.each([
  '',
  `svc_live_abcdefghij_${secret}\n`,
  ` svc_live_abcdefghij_${secret}`,
  `svc_prod_abcdefghij_${secret}`,
  `SVC_live_abcdefghij_${secret}`,
  `svc_live_abcdefghi_${secret}`,
  `svc_live_abcdefghiJ_${secret}`,
  `svc_live_abcdefghij_${secret}a`,
  `svc_live_abcdefghij_${secret.slice(1)}`,
  `svc_live_abcdefghij_${secret.slice(1)}-`,
])('text of another form is no key: %j', (text) => {
  expect(parseKey(text)).toBeUndefined();
});

test('a secret matches only its own SHA-256', () => {
  const sha256 = createHash('sha256').update(secret).digest('hex');
  expect(matches(secret, sha256)).toBe(true);
  expect(matches(`${secret.slice(1)}b`, sha256)).toBe(false);
  for (const broken of ['', 'zz', sha256.slice(2), `${sha256}00`])
    expect(matches(secret, broken)).toBe(false);
});
