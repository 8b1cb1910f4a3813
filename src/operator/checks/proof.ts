import { DAY_MS, formatDateTime } from '../../domain/values/date-time.ts';
import { recordedAtMs } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readOperations } from '../../event-store/operations.ts';
import { lastSeal } from '../../seals/seals.ts';
import { type Finding, right, wrong } from './check.ts';

/** Two nights. */
const PROVEN_WITHIN_MS = 2 * DAY_MS;

/** Whether what was sealed has been proven lately: every night does it. */
export async function checkProof(
  store: Pick<EventStore, 'readStream' | 'readLast'>,
  nowMs: number,
): Promise<Finding> {
  const seal = await lastSeal(store);
  if (seal === undefined) return right('nothing is sealed yet: a process with the role projector does it');
  const sealed = `${seal.size} events were sealed at ${formatDateTime(recordedAtMs(seal.recorded))}`;
  const proof = (await readOperations(store)).findLast(({ type }) => type === 'LogProven');
  if (proof?.type !== 'LogProven') return right(`${sealed}, and nothing was proven yet: fuel audit verify`);
  const atMs = recordedAtMs(proof.recorded);
  const detail = `${sealed}; the first ${proof.data.size} were proven at ${formatDateTime(atMs)}`;
  const isOld = proof.data.size < seal.size && nowMs - atMs > PROVEN_WITHIN_MS;
  return isOld
    ? wrong(detail, 'fuel audit verify; and see why no night proved it, in the log of the projector')
    : right(detail);
}
