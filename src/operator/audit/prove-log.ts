import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Log } from '../../base/log.ts';
import type { Rest } from '../../base/pause.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Author } from '../../event-store/new-event.ts';
import { operationsOf, recordOperations } from '../../event-store/operations.ts';
import { storeIdentity } from '../../event-store/store-identity.ts';
import { openSigner } from '../../seals/seal-key.ts';
import { type LogVerification, verifyLog } from '../../seals/verify-log.ts';

/** Records that the log is what was sealed. Records nothing if it is not, or nothing new was sealed. */
export async function recordProof(
  { fault, seals, sealedSize, sealedRoot }: LogVerification,
  { store, author, clock }: { readonly store: EventStore; readonly author: Author; readonly clock: Clock },
): Promise<void> {
  if (fault !== undefined || seals === 0) return;
  const proven = { type: 'LogProven', data: { size: sealedSize, root: sealedRoot } } as const;
  await recordOperations(store, [proven], { author, clock });
}

/** Proves what was sealed since the last proof, and logs a difference. */
export async function proveLog(options: {
  readonly store: EventStore;
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly author: Author;
  readonly signal: AbortSignal;
  readonly rest: Rest;
}): Promise<void> {
  const { store, config, clock, log, signal, rest } = options;
  const key = openSigner(await storeIdentity(store, clock), config).verifier;
  const { provenSize: since } = await operationsOf(store);
  const found = await verifyLog({ store, key, since, signal, rest });
  if (found.fault === undefined) log.info({ since, sealed: found.sealedSize }, 'the log is what was sealed');
  else log.error({ fault: found.fault }, 'the log is not what was sealed: fuel audit verify, docs/audit.md');
  await recordProof(found, options);
}
