import type { ProjectorThreadData } from './projector-thread.ts';
import { type RoleThread, startRoleThread } from './role-thread.ts';

const HEAP_MB = 96; // one batch of events
const HEAP_EVENTSTOREDB_MB = 256; // and what its driver holds, which is bounded by number alone

/** Starts the projector in a thread of its own. */
export function startProjector(data: ProjectorThreadData): RoleThread {
  const entry = new URL('./projector-thread.ts', import.meta.url);
  const heapMb = data.config.EVENTSTORE_URL === undefined ? HEAP_MB : HEAP_EVENTSTOREDB_MB;
  return startRoleThread({ role: 'projector', entry, data, heapMb });
}
