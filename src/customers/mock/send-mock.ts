import { Agent, request as send } from 'undici';
import type { PlannedWebhook } from './mock-webhooks.ts';

/** As the service's own sender has it. */
const TIME_LIMIT_MS = 500;

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

export interface MockSender {
  send(webhook: PlannedWebhook): Promise<SentWebhook>;
  close(): Promise<void>;
}

/**
 * Sends to any URL: also by plain HTTP, and whatever the certificate is, since a receiver under test seldom has a public
 * one. The time limit is that of the service; redirects are not followed.
 */
export function createMockSender(): MockSender {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  return {
    async send({ request, deliveryId, transactionId, expected }) {
      const startedMs = performance.now();
      const { status, error } = await attempt(dispatcher, request);
      const isAccepted = status !== null && status >= 200 && status < 300;
      return {
        delivery: deliveryId,
        transaction: transactionId,
        expected,
        as_expected: status !== null && isAccepted === (expected === 'accepted'),
        status,
        error,
        ms: Math.round(performance.now() - startedMs),
      };
    },
    close: () => dispatcher.destroy(),
  };
}

async function attempt(
  dispatcher: Agent,
  { url, headers, body }: PlannedWebhook['request'],
): Promise<{ status: number | null; error: string | null }> {
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
