import { isIP } from 'node:net';
import { LRUCache } from 'lru-cache';
import { type Clock, steadyClock } from '../../base/clock.ts';
import { withinTime } from '../../base/time/within-time.ts';
import type { ResolveName } from '../targets/resolve-name.ts';
import type { FoundAddresses, NameLookup } from '../targets/target.ts';

const LOOKUP_LIMIT_MS = 500;
/** How long addresses are kept: less than the wait before a retry, so that a retry uses a changed address. */
const KEPT_MS = 20_000;
const FAILURE_KEPT_MS = 1_000;
const MAX_KEPT_NAMES = 10_000;

interface NameLookupOptions {
  readonly resolve: ResolveName;
  readonly steady?: Clock;
}

/**
 * Looks up names, each within 500 ms. An answer is kept for 20 s, a failure for 1 s. Callers that ask for the same name at
 * the same time share one look-up.
 */
export function createNameLookup({ resolve, steady = steadyClock }: NameLookupOptions): NameLookup {
  const kept = new LRUCache<string, FoundAddresses>({
    max: MAX_KEPT_NAMES,
    ttl: KEPT_MS,
    ttlResolution: 0,
    perf: steady,
    ignoreFetchAbort: true, // a caller gets its answer even if the name is dropped from the cache meanwhile
    async fetchMethod(name, _stale, { options: keeping }) {
      const { result: found } = await withinTime<FoundAddresses>({
        limitMs: LOOKUP_LIMIT_MS,
        work: (signal) => tryToResolve(name, signal),
        expired: () => ({ ok: false, detail: `${name}: no answer within ${LOOKUP_LIMIT_MS} ms` }),
      });
      keeping.ttl = found.ok ? KEPT_MS : FAILURE_KEPT_MS;
      return found;
    },
  });

  async function tryToResolve(name: string, signal: AbortSignal): Promise<FoundAddresses> {
    try {
      const addresses = await resolve(name, signal);
      return addresses.length > 0 ? { ok: true, addresses } : { ok: false, detail: `${name} has no address` };
    } catch (error) {
      return { ok: false, detail: error instanceof Error ? error.message : String(error) };
    }
  }

  return {
    find: async (host) => (isIP(host) === 0 ? kept.forceFetch(host) : { ok: true, addresses: [host] }),
  };
}
