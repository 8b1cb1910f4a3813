import { Agent, request as send } from 'undici';
import type { PlannedWebhook } from './mock-webhooks.ts';

/** The time limit of the service's own sender. */
const TIME_LIMIT_MS = 500;

/** Accepts any certificate, since a receiver under test seldom has a public one. */
const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });

export interface SentWebhook {
  readonly delivery: string;
  readonly transaction: number | null;
  readonly expected: 'accepted' | 'refused';
  /** True if the receiver did what is expected: answered 2xx, or anything else. */
  readonly as_expected: boolean;
  readonly status: number | null;
  /** Why there is no status. */
  readonly error: string | null;
  readonly ms: number;
}

/** Sends to any URL, even by plain HTTP. Redirects are not followed. */
export async function sendWebhook(webhook: PlannedWebhook): Promise<SentWebhook> {
  const { deliveryId: delivery, transactionId: transaction, expected } = webhook;
  const { url, ...request } = webhook.request;
  const startedMs = performance.now();
  const signal = AbortSignal.timeout(TIME_LIMIT_MS);
  let status: number | null = null;
  let error: string | null = null;
  try {
    const answer = await send(url, { method: 'POST', ...request, dispatcher, signal });
    await answer.body.dump();
    status = answer.statusCode;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    error = signal.aborted ? `no complete answer within ${TIME_LIMIT_MS} ms` : message || String(code);
  }
  const isAccepted = status !== null && status >= 200 && status < 300;
  const as_expected = status !== null && isAccepted === (expected === 'accepted');
  const ms = Math.round(performance.now() - startedMs);
  return { delivery, transaction, expected, as_expected, status, error, ms };
}
