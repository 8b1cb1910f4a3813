import type { Config } from '../base/config/config.ts';
import { retryWhileUnavailable } from '../base/retry.ts';
import { storeIdentity } from '../event-store/store-identity.ts';
import { openSigner } from './seal-key.ts';
import { runSealer, type SealerOptions } from './sealer.ts';

/**
 * Seals the log with the key of the configuration until the signal aborts. Waits while a store is unavailable. Never
 * rejects: after a failure the log stays unsealed, which is logged as an error.
 */
export async function sealLog(
  options: Omit<SealerOptions, 'signer'> & { readonly config: Config },
): Promise<void> {
  const { config, store, clock, log, signal } = options;
  try {
    const named = () => storeIdentity(store, clock);
    const storeId = await retryWhileUnavailable(named, { log, signal, component: 'sealer' });
    if (storeId === undefined) return; // the signal aborted during the wait
    await runSealer({ ...options, signer: openSigner(storeId, config) });
  } catch (error) {
    if (!signal.aborted) log.error({ err: error }, 'the log is no longer sealed: run fuel audit verify');
  }
}
