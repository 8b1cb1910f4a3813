import { generateKeyPairSync } from 'node:crypto';
import { silentLog } from '../../../src/base/log.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { CheckpointSigner } from '../../../src/seals/checkpoint.ts';
import { originOf } from '../../../src/seals/seal-key.ts';
import { runSealer } from '../../../src/seals/sealer.ts';
import { lastSeal } from '../../../src/seals/seals.ts';
import { FakeClock } from '../fake-clock.ts';
import { until } from '../waiting.ts';

export const signer = new CheckpointSigner(originOf('one'), [generateKeyPairSync('ed25519').privateKey]);
export const key = signer.verifier;

/** Runs a sealer until everything recorded so far is sealed, in seals of at most `leaves` events and a batch. */
export async function seal(store: EventStore, { leaves = 1_000, by = signer } = {}): Promise<void> {
  const stopping = new AbortController();
  const [newest] = (await store.readBackwards({ prefixes: [], limit: 1 })).events;
  const head = newest?.position ?? 0;
  const running = runSealer({
    store,
    signer: by,
    holder: 'this',
    clock: new FakeClock(),
    log: silentLog,
    coordination: { acquire: async () => true, release: async () => undefined },
    limits: { leaves, withinMs: 0 },
    signal: stopping.signal,
  });
  try {
    await until(async () => {
      const last = await lastSeal(store);
      if (last === undefined) return false;
      const [end] = await store.readStream(last.last.stream, { fromRevision: last.last.revision, limit: 1 });
      return end !== undefined && end.position >= head;
    });
  } finally {
    stopping.abort();
    await running;
  }
}
