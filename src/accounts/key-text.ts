import { hash, timingSafeEqual } from 'node:crypto';
import { world } from '../base/world.ts';
import type { Environment } from '../domain/account-events.ts';

const LOWER_CASE = 'abcdefghijklmnopqrstuvwxyz0123456789';
const ALPHANUMERIC = `ABCDEFGHIJKLMNOPQRSTUVWXYZ${LOWER_CASE}`;
const PREFIX_LENGTH = 10;
const SECRET_LENGTH = 43; // 62^43 is more than 2^256

export interface GeneratedKey {
  /** `svc_live_<prefix>_<secret>` or `svc_test_…`. */
  readonly key: string;
  readonly prefix: string;
  /** The hash of the secret in lower-case hex, which is all that is stored of it. */
  readonly secretSha256: string;
}

export function generateKey(environment: Environment): GeneratedKey {
  const prefix = randomText(LOWER_CASE, PREFIX_LENGTH);
  const secret = randomText(ALPHANUMERIC, SECRET_LENGTH);
  const form = environment === 'production' ? 'live' : 'test';
  return { key: `svc_${form}_${prefix}_${secret}`, prefix, secretSha256: hash('sha256', secret) };
}

/** Generates 43 characters of `[A-Za-z0-9]`. Their bytes are the signing key. */
export function generateWebhookSecret(): string {
  return randomText(ALPHANUMERIC, SECRET_LENGTH);
}

/** A webhook secret as libraries for Standard Webhooks take it: they decode it to the bytes of the same HMAC key. */
export function standardSecret<T extends string | null>(secret: T): T | string {
  return secret === null ? secret : `whsec_${Buffer.from(secret).toString('base64')}`;
}

/**
 * Checks in constant time whether a presented secret has this SHA-256 (hex). A stored text that is not a SHA-256
 * matches nothing.
 */
export function matches(secret: string, secretSha256: string): boolean {
  const stored = Buffer.from(secretSha256, 'hex');
  const presented = hash('sha256', secret, 'buffer');
  return stored.length === presented.length && timingSafeEqual(stored, presented);
}

function randomText(alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet.charAt(world.randomInt(alphabet.length))).join('');
}
