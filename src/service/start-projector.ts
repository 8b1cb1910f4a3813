import type { ProjectorThreadData } from './projector-thread.ts';
import { type RoleThread, startRoleThread } from './role-thread.ts';

const HEAP_MB = 96; // one batch of events

/** Starts the projector in a thread of its own. */
export function startProjector(data: ProjectorThreadData): RoleThread {
  const entry = new URL('./projector-thread.ts', import.meta.url);
  return startRoleThread({ role: 'projector', entry, data, heapMb: HEAP_MB });
}
