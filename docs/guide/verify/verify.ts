import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';

const TOLERANCE_SECONDS = 300;

/** `header`: X-Service-Signature. `rawBody`: the unchanged bytes of the body. `now`: Unix seconds. */
export function isGenuine(
  header: string | undefined,
  rawBody: Buffer,
  secret: string,
  now: number = Date.now() / 1000,
): boolean {
  const hmacKey = secret.trim();
  if (hmacKey === '') return false; // anybody could sign with it
  const [, t, v1] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(header ?? '') ?? [];
  if (t === undefined || v1 === undefined) return false;
  if (Math.abs(now - Number(t)) > TOLERANCE_SECONDS) return false;
  const expected = createHmac('sha256', hmacKey).update(`${t}.`).update(rawBody).digest();
  return timingSafeEqual(expected, Buffer.from(v1, 'hex'));
}

// node verify.ts SECRET HEADER [NOW] < body
if (import.meta.main) {
  const [secret = '', header, now] = process.argv.slice(2);
  const genuine = isGenuine(header, readFileSync(0), secret, now === undefined ? undefined : Number(now));
  process.stdout.write(genuine ? 'genuine\n' : 'not genuine\n');
}
