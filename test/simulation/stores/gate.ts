import { PROGRESS } from '../../../src/accounts/rows/tables.ts';
import { FuelError } from '../../../src/base/errors.ts';
import type { LeaseTerms, QueueChange } from '../../../src/push/queue/delivery-queue.ts';
import type { Write } from '../../../src/tables/tables.ts';
import type { Chance } from '../core/chance.ts';
import type { Owner, Timeline } from '../core/timeline.ts';

import type { Gate, StoreName } from './stores.ts';

/** The probability of each fault for each call; 0 means never. */
export interface FaultRates {
  /** The process ends before the call, or after it and before its answer. */
  readonly ends: number;
  /** The call takes up to some seconds. */
  readonly slow: number;
  /** A write to the delivery log waits for tens of seconds, as for the lock of a file or a slow server. */
  readonly stalls: number;
  /** The call is done, and its answer is an error. */
  readonly unanswered: number;
  /** The call is not done. */
  readonly refused: number;
  /** The process does nothing for some seconds: its leases end while it is only slow. */
  readonly pauses: number;
}

export const NO_FAULTS: FaultRates = { ends: 0, slow: 0, stalls: 0, unanswered: 0, refused: 0, pauses: 0 };
/** The fault rates in a storm, for the kinds that may happen. */
export const STORM: FaultRates = {
  ends: 0.004,
  slow: 0.02,
  stalls: 0.02,
  unanswered: 0.01,
  refused: 0.01,
  pauses: 0.003,
};

const READS =
  /^(get|firsts|count|now|read|find|page|head|has|is|checkpoint|building|parked|status|next|pendingLanes|countIn|heads|health|backlog|rows|logId|dueLanes|failingLanes|asked|subscribe|consume|idsAfter|last|of|late|transactionsAfter)/;
const MAX_SLOW_MS = 3_000;
const MAX_STALL_MS = 40_000;
const MAX_PAUSE_MS = 15_000;

interface GateParts {
  readonly timeline: Timeline;
  readonly chance: Chance;
  /** Returns the current rates; none in a quiet time. */
  readonly rates: () => FaultRates;
  /** True if this lease stalls for certain. */
  readonly stallsLease: (terms: LeaseTerms) => boolean;
  /** True if a process can reach a store. */
  readonly isReachable: (process: Owner, store: StoreName) => boolean;
  readonly onFault: (process: Owner, what: string) => void;
  readonly end: (process: Owner, why: string) => void;
  /** Called just before a call is done. */
  readonly onCall: (what: string, args: readonly unknown[]) => void;
}

/** Makes the gate between a process and its stores, where things go wrong. */
export function gateOf(parts: GateParts): (process: Owner) => Gate {
  const { timeline, chance, rates, stallsLease, isReachable, onFault, end, onCall } = parts;
  return (process) => async (store, method, args, call) => {
    if (!process.isAlive) return never();
    const what = `${store}.${method}`;
    const isStep = method.endsWith('.next') || method === 'consume.next';
    const isWrite = !READS.test(method) && store !== 'coordination' && !isStep;
    const { ends, slow, stalls, unanswered, refused, pauses } = rates();
    if (isWrite && isSomething(method, args)) timeline.active();
    if (process.pausedUntilMs > timeline.nowMs) await timeline.pause(0, process);
    if (!isReachable(process, store)) {
      if (!isStep) {
        await timeline.pause(5, process);
        throw unavailable(what);
      }
      while (!isReachable(process, store)) await timeline.pause(250, process);
    }
    if (pauses > 0 && chance.is(pauses)) {
      process.pausedUntilMs = timeline.nowMs + chance.between(500, MAX_PAUSE_MS);
      onFault(process, `is slow from ${what} on for ${process.pausedUntilMs - timeline.nowMs} ms`);
      await timeline.pause(0, process);
    }
    if (slow > 0 && chance.is(slow)) await timeline.pause(chance.int(MAX_SLOW_MS), process);
    const isStalled =
      (what === 'queue.lease' && stallsLease(args[1] as LeaseTerms)) ||
      (stalls > 0 && isWrite && store === 'queue' && chance.is(stalls));
    if (isStalled) {
      const forMs = chance.int(MAX_STALL_MS);
      onFault(process, `${what} stalls for ${forMs} ms`);
      await timeline.pause(forMs, process);
      onFault(process, `${what} goes on`);
    }
    if (refused > 0 && !isStep && chance.is(refused)) {
      onFault(process, `${what} is refused`);
      throw unavailable(what);
    }
    if (ends > 0 && chance.is(ends)) {
      end(process, `before ${what}`);
      return never();
    }
    onCall(what, args);
    const answer = await call();
    if (!process.isAlive) return never();
    if (isStep) return answer;
    if (ends > 0 && chance.is(isWrite ? 3 * ends : ends)) {
      end(process, `after ${what}`);
      return never();
    }
    if (slow > 0 && chance.is(slow)) await timeline.pause(chance.int(MAX_SLOW_MS), process);
    if (unanswered > 0 && chance.is(unanswered)) {
      onFault(process, `${what} is done and not answered`);
      throw unavailable(what);
    }
    return answer;
  };
}

/** True if a write changes anything. An empty one is a heartbeat. */
function isSomething(method: string, [first]: readonly unknown[]): boolean {
  if (method === 'lease') return false;
  if (method === 'write' && (first as readonly Write[]).every(({ table }) => table === PROGRESS))
    return false;
  if (method === 'change') return (first as QueueChange).kind !== 'enabled'; // at each start
  return !Array.isArray(first) || first.length > 0;
}

function unavailable(what: string): FuelError {
  return new FuelError('STORE_UNAVAILABLE', `${what}: simulated`);
}

/** Returns a new promise each time, so that everything that waits for it can be collected. */
function never(): Promise<never> {
  return new Promise(() => undefined);
}
