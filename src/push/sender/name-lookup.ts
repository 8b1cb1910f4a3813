import { isIP } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../base/clock.ts';
import type { ResolveName } from '../targets/resolve-name.ts';
import type { FoundAddresses, NameLookup } from '../targets/target.ts';
import { withinTime } from './within-time.ts';

const LOOKUP_LIMIT_MS = 500;
/** Shorter than the wait before a retry, so that a retry sees a changed address. */
const KEPT_MS = 20_000;
const FAILURE_KEPT_MS = 1_000;
const MAX_KEPT_NAMES = 10_000;

/**
 * Looks names up, each within 500 ms. An answer is kept for 20 s, a failure for 1 s; a name that is being looked up
 * already is not looked up twice.
 */
export function createNameLookup(options: { resolve: ResolveName; clock: Clock }): NameLookup {
  const { resolve, clock } = options;
  const kept = new LRUCache<string, FoundAddresses>({
    max: MAX_KEPT_NAMES,
    ttl: KEPT_MS,
    ttlResolution: 0,
    perf: clock,
  });
  const underWay = new Map<string, Promise<FoundAddresses>>();

  async function lookUp(name: string): Promise<FoundAddresses> {
    const { result: found } = await withinTime<FoundAddresses>({
      limitMs: LOOKUP_LIMIT_MS,
      work: (signal) => tryToResolve(name, signal),
      expired: () => ({ ok: false, detail: `${name}: no answer within ${LOOKUP_LIMIT_MS} ms` }),
    });
    kept.set(name, found, { ttl: found.ok ? KEPT_MS : FAILURE_KEPT_MS });
    underWay.delete(name);
    return found;
  }

  async function tryToResolve(name: string, signal: AbortSignal): Promise<FoundAddresses> {
    try {
      const addresses = await resolve(name, signal);
      return addresses.length > 0 ? { ok: true, addresses } : { ok: false, detail: `${name} has no address` };
    } catch (error) {
      return { ok: false, detail: error instanceof Error ? error.message : String(error) };
    }
  }

  return {
    async find(host) {
      if (isIP(host) !== 0) return { ok: true, addresses: [host] };
      const known = kept.get(host) ?? underWay.get(host);
      if (known !== undefined) return known;
      const lookup = lookUp(host);
      underWay.set(host, lookup);
      return lookup;
    },
  };
}
