import { createHmac, timingSafeEqual } from 'node:crypto';

const HEADER = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/;
const DEFAULT_TOLERANCE_MS = 5 * 60_000;

interface SignatureCheck {
  /** The header as it was received. */
  readonly header: string;
  readonly secret: string;
  /** The exact bytes that were received. */
  readonly body: Uint8Array;
  readonly nowMs: number;
  /** How far the signing time may be from now in either direction; by default 5 minutes. */
  readonly toleranceMs?: number;
}

/** True if a signature is genuine and fresh. Compares in constant time, as a receiver does. */
export function isGenuine(check: SignatureCheck): boolean {
  const { header, secret, body, nowMs, toleranceMs = DEFAULT_TOLERANCE_MS } = check;
  const [, t, v1] = HEADER.exec(header) ?? [];
  if (t === undefined || v1 === undefined) return false;
  if (Math.abs(nowMs - Number(t) * 1000) > toleranceMs) return false;
  const expected = createHmac('sha256', secret).update(`${t}.`).update(body).digest();
  return timingSafeEqual(expected, Buffer.from(v1, 'hex'));
}
