import { Agent, request as send } from 'undici';
import type { SendRequest } from '../../push/sender/timed-send.ts';
import type { Expected } from './mock-webhooks.ts';

const TIME_LIMIT_MS = 500; // as of the service's own sender

/** Accepts any certificate, since a receiver under test seldom has a public one. */
const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });

type SentBody = { readonly id: string; readonly data: { readonly transaction?: { readonly id: number } } };
export type SentWebhook = Awaited<ReturnType<typeof sendWebhook>>;

/** Sends to any URL, even by plain HTTP. Redirects are not followed. Says whether the receiver did what is expected. */
export async function sendWebhook({ url, ...request }: SendRequest, expected: Expected) {
  const { id: delivery, data }: SentBody = JSON.parse(request.body);
  const startedMs = performance.now();
  const signal = AbortSignal.timeout(TIME_LIMIT_MS);
  let status: number | null = null;
  let error: string | null = null; // why there is no status
  try {
    const answer = await send(url, { method: 'POST', ...request, dispatcher, signal });
    await answer.body.dump();
    status = answer.statusCode;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    error = signal.aborted ? `no complete answer within ${TIME_LIMIT_MS} ms` : message || String(code);
  }
  const isAccepted = status !== null && status >= 200 && status < 300;
  const isAllowed = status === 503 && expected === 'accepted or 503';
  const as_expected = status !== null && (isAllowed || isAccepted === (expected !== 'refused'));
  const ms = Math.round(performance.now() - startedMs);
  return { delivery, transaction: data.transaction?.id ?? null, expected, as_expected, status, error, ms };
}
