import { LRUCache } from 'lru-cache';
import { HmacSha256 } from '../../pull/images/hmac-sha256.ts';

/** Secrets whose prepared HMAC is kept, some kilobytes each: those of a busy minute. */
const KEPT_SECRETS = 1_000;

const hmacs = new LRUCache<string, HmacSha256>({
  max: KEPT_SECRETS,
  memoMethod: (secret) => new HmacSha256(Buffer.from(secret)),
});

/**
 * The value of `X-Service-Signature`: `t=<unix seconds>,v1=<hex>`. The HMAC-SHA256 covers `<t>.<body>`; its key
 * is the secret's text itself, not decoded.
 */
export function signature({ secret, body, atMs }: { secret: string; body: string; atMs: number }): string {
  const t = Math.floor(atMs / 1000);
  return `t=${t},v1=${hmacs.memo(secret).hex(`${t}.${body}`)}`;
}
