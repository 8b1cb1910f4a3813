import { createHmac } from 'node:crypto';

/**
 * The value of `X-Service-Signature`: `t=<unix seconds>,v1=<hex>`. The HMAC-SHA256 covers `<t>.<body>`; its key
 * is the secret's text itself, not decoded.
 */
export function signature({ secret, body, atMs }: { secret: string; body: string; atMs: number }): string {
  const t = Math.floor(atMs / 1000);
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`;
}
