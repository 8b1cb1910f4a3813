import { v5 } from 'uuid';
import type {
  Attempt,
  AttemptOutcome,
  ClaimedDelivery,
  DeliveryReport,
  NewDelivery,
} from '../../../src/push/queue/delivery.ts';
import type { DeliveryQueue, HeadsOptions, LeaseTerms } from '../../../src/push/queue/delivery-queue.ts';
import { sampleRecord } from '../transactions/records.ts';

const NAMESPACE = '5f0f9d0e-3c8e-4a53-9d0c-2f6f0a1d7b11';

/** A delivery of transaction `n` to a key of account 7. */
export function newDelivery(n: number, overrides: Partial<NewDelivery> = {}): NewDelivery {
  const prefix = overrides.prefix ?? 'aaaaaaaaaa';
  const transactionId = overrides.transactionId ?? n;
  return {
    id: v5(`${prefix}/${transactionId}`, NAMESPACE),
    prefix,
    accountId: 7,
    transactionId,
    type: 'transaction.confirmed',
    createdAtMs: 1_000,
    position: n,
    occurredAtMs: 900,
    record: sampleRecord({ id: n, pump: `photos/${n}` }),
    ...overrides,
  };
}

export const SUCCESS: AttemptOutcome = {
  ok: true,
  answer: { status: 204, headers: { server: 'x' }, body: '' },
};
export const UNAVAILABLE: AttemptOutcome = {
  ok: false,
  kind: 'status',
  detail: 'status 503',
  answer: { status: 503, headers: {}, body: 'busy' },
};
/** A refusal, with the header `Retry-After` if a value is given. */
export function answered(status: number, retryAfter?: string): AttemptOutcome {
  const headers: Record<string, string> = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  return { ok: false, kind: 'status', detail: `status ${status}`, answer: { status, headers, body: '' } };
}
export const TIMEOUT: AttemptOutcome = {
  ok: false,
  kind: 'timeout',
  detail: 'no answer in 500 ms',
  answer: null,
};

export const CUT: AttemptOutcome = {
  ok: false,
  kind: 'cut',
  detail: 'the connection was closed',
  answer: null,
};

/** How a test claims. It fits `heads`, `lease` and `enqueue`. */
export interface ClaimOptions extends HeadsOptions, LeaseTerms {
  /** The most deliveries that are claimed. */
  readonly limit: number;
  readonly laneCapacity: (prefix: string) => number;
}

/** Claims deliveries with the simplest pace: as many of each lane as it has capacity for, the first lanes first. */
export async function claimFrom(
  queue: Pick<DeliveryQueue, 'heads' | 'lease'>,
  options: ClaimOptions,
): Promise<readonly ClaimedDelivery[]> {
  const { lanes } = await queue.heads(options);
  const chosen = new Map<string, number>();
  let left = options.limit;
  for (const { prefix, count } of lanes) {
    const most = Math.max(0, Math.min(count, options.laneCapacity(prefix), left));
    chosen.set(prefix, most);
    left -= most;
  }
  return queue.lease(lanes, { ...options, chosen });
}

export function claimOptions(nowMs: number, overrides: Partial<ClaimOptions> = {}): ClaimOptions {
  const options = {
    nowMs,
    holder: 'one',
    leaseMs: 5_000,
    longestWaitMs: 360_000,
    limit: 100,
    laneCapacity: () => 100,
    ...overrides,
  };
  return { ...options, chosen: { get: (prefix) => Math.max(0, options.laneCapacity(prefix)) } };
}

/** The attempt that a claim asks for. It takes a quarter of a second. */
export function attemptOf(claim: ClaimedDelivery, startedAtMs: number, outcome: AttemptOutcome): Attempt {
  return {
    cycle: claim.cycle,
    number: claim.attemptNumber,
    startedAtMs,
    durationMs: 250,
    othersUnderWay: 3,
    outcome,
  };
}

export function delivered(
  claim: ClaimedDelivery,
  startedAtMs: number,
  outcome: AttemptOutcome = SUCCESS,
): DeliveryReport {
  return { kind: 'delivered', ...claimOf(claim), attempt: attemptOf(claim, startedAtMs, outcome) };
}

export function retryAt(
  claim: ClaimedDelivery,
  startedAtMs: number,
  dueAtMs: number,
  outcome: AttemptOutcome = UNAVAILABLE,
): DeliveryReport {
  return { kind: 'retry', ...claimOf(claim), attempt: attemptOf(claim, startedAtMs, outcome), dueAtMs };
}

export function failed(
  claim: ClaimedDelivery,
  startedAtMs: number,
  outcome: AttemptOutcome = UNAVAILABLE,
): DeliveryReport {
  return {
    kind: 'failed',
    ...claimOf(claim),
    attempt: attemptOf(claim, startedAtMs, outcome),
    reason: 'status 503',
  };
}

/** The members that every report about a claim has. */
export function claimOf({ id, prefix, transactionId, leaseToken }: ClaimedDelivery) {
  return { id, prefix, transactionId, leaseToken };
}
