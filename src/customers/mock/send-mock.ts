import { Agent, request as send } from 'undici';
import type { PlannedWebhook } from './mock-webhooks.ts';

/** As the service's own sender has it. */
const TIME_LIMIT_MS = 500;

/** Takes any certificate, since a receiver under test seldom has a public one. */
const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });

export interface SentWebhook {
  readonly delivery: string;
  readonly transaction: number | null;
  readonly expected: 'accepted' | 'refused';
  /** Whether the receiver did that: 2xx, or any other answer. */
  readonly as_expected: boolean;
  readonly status: number | null;
  /** Why there is no status. */
  readonly error: string | null;
  readonly ms: number;
}

/** Sends to any URL, also by plain HTTP. The time limit is that of the service; redirects are not followed. */
export async function sendWebhook(webhook: PlannedWebhook): Promise<SentWebhook> {
  const { deliveryId: delivery, transactionId: transaction, expected } = webhook;
  const startedMs = performance.now();
  const { status, error } = await attempt(webhook.request);
  const isAccepted = status !== null && status >= 200 && status < 300;
  const as_expected = status !== null && isAccepted === (expected === 'accepted');
  const ms = Math.round(performance.now() - startedMs);
  return { delivery, transaction, expected, as_expected, status, error, ms };
}

async function attempt({
  url,
  headers,
  body,
}: PlannedWebhook['request']): Promise<Pick<SentWebhook, 'status' | 'error'>> {
  const signal = AbortSignal.timeout(TIME_LIMIT_MS);
  try {
    const answer = await send(url, { method: 'POST', headers, body, dispatcher, signal });
    await answer.body.dump();
    return { status: answer.statusCode, error: null };
  } catch (cause) {
    if (signal.aborted) return { status: null, error: `no complete answer within ${TIME_LIMIT_MS} ms` };
    const { code, message } = cause as NodeJS.ErrnoException;
    return { status: null, error: message || String(code) };
  }
}
