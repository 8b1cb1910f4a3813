import type { AttemptOutcome } from '../queue/delivery.ts';

/** The longest wait that a receiver can ask for in one answer. */
export const MAX_RETRY_AFTER_MS = 300_000;
/** The wait after a 429 that does not say how long. */
const UNSAID_MS = 1_000;
/** The three forms of a date in HTTP (RFC 9110, section 5.6.7). The last one has no zone and means GMT. */
const HTTP_DATE =
  /^[A-Z][a-z]{2,8}(?:, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT| [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4})$/;

/**
 * How long the receiver asks to wait after an attempt, by its 429 or by its 503 with `Retry-After`: from 0 to
 * `MAX_RETRY_AFTER_MS`; `null` if it does not ask.
 */
export function retryAfterMs({ ok, answer }: AttemptOutcome, endedAtMs: number): number | null {
  if (ok || (answer?.status !== 429 && answer?.status !== 503)) return null;
  const asked = readRetryAfter(answer.headers['retry-after']?.trim() ?? '', endedAtMs);
  if (asked === undefined) return answer.status === 429 ? UNSAID_MS : null;
  return Math.min(Math.max(asked, 0), MAX_RETRY_AFTER_MS);
}

/** Reads the header; `undefined` if it is absent or malformed, since a wrong time is worse than none. */
function readRetryAfter(value: string, nowMs: number): number | undefined {
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  if (!HTTP_DATE.test(value)) return undefined;
  const atMs = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(atMs) ? undefined : atMs - nowMs;
}
