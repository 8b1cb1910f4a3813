import type { Engines } from '../engines/engines.ts';

/** It is small, since embedded engines share the memory of one machine with everything else. */
const YOUNG_MB = 12;
/** It is larger, since the drivers of remote engines create many short-lived objects per event. */
const YOUNG_REMOTE_MB = 32;

/** The size of the young generation of a role's thread. It is `embedded` if all stores are embedded. */
export function youngMb({ remote }: Pick<Engines, 'remote'>, embedded = YOUNG_MB): number {
  return remote.length === 0 ? embedded : YOUNG_REMOTE_MB;
}
