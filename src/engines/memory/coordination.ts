import type { Clock } from '../../base/clock.ts';
import type { Coordination, Lease, LiveProcess } from '../../base/coordination/coordination.ts';
import { mayBeAlive } from '../stored/may-be-alive.ts';
import { opening } from './opening.ts';

export class MemoryCoordination {
  readonly leases = new Map<string, Lease>();
  readonly processes = new Map<string, LiveProcess>();
}

export function openMemoryCoordination(
  { leases, processes }: MemoryCoordination,
  clock: Clock,
): Coordination {
  const current = (name: string): Lease | undefined => {
    const lease = leases.get(name);
    return lease !== undefined && lease.expiresAtMs > clock.now() ? { ...lease } : undefined;
  };
  return opening('the coordination', {
    async acquire(name: string, holder: string, ttlMs: number) {
      const lease = current(name);
      if (lease !== undefined && lease.holder !== holder) return false;
      leases.set(name, { holder, expiresAtMs: clock.now() + ttlMs });
      return true;
    },
    async release(name: string, holder: string) {
      if (leases.get(name)?.holder === holder) leases.delete(name);
    },
    holder: async (name: string) => current(name),
    async report(process: LiveProcess) {
      processes.set(process.id, { ...structuredClone(process), seenAtMs: clock.now() }); // as a server's clock says
    },
    async leave(processId: string) {
      processes.delete(processId);
    },
    async live(maxAgeMs: number) {
      const oldest = clock.now() - maxAgeMs;
      const seen = [...processes.values()].filter(({ seenAtMs }) => seenAtMs > oldest);
      return structuredClone(seen.filter(mayBeAlive)).sort(
        (a, b) => a.startedAtMs - b.startedAtMs || (a.id < b.id ? -1 : 1),
      );
    },
  });
}
