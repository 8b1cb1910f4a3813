import type { Config } from '../base/config/config.ts';
import { retryWhileUnavailable } from '../base/retry.ts';
import { storeIdentity } from '../event-store/store-identity.ts';
import { openSigner } from './seal-key.ts';
import { runSealer, type SealerOptions } from './sealer.ts';

/**
 * Seals the log under the key of the configuration until the signal aborts. Waits while a store is unavailable. Never
 * rejects: without a key, and after a failure, the log stays unsealed, which is logged as an error.
 */
export async function sealLog(
  options: Omit<SealerOptions, 'signer'> & { readonly config: Config },
): Promise<void> {
  const { config, store, clock, log, signal } = options;
  try {
    const named = () => storeIdentity(store, clock);
    const storeId = await retryWhileUnavailable(named, { log, signal, component: 'sealer' });
    if (storeId === undefined) return; // ended while it waited
    const signer = openSigner(storeId, config);
    if (signer !== undefined) await runSealer({ ...options, signer });
    else log.error('FUEL_SEAL_KEY is not set: the log is not sealed, and can not be proven later');
  } catch (error) {
    if (!signal.aborted) log.error({ err: error }, 'the log is not sealed any more: fuel audit verify');
  }
}
