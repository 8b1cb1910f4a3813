import { sinceBoot } from '../../base/clock.ts';
import { isUnavailable } from '../../base/errors.ts';
import type { EventStore, Position } from '../../event-store/event-store.ts';
import type { Standing } from '../ops/standing.ts';

/**
 * Whether a directory may be judged by: commands wait for this process, or it has everything that is recorded at this
 * moment, as the end of an embedded log tells. So a disk that takes no report does not end reading.
 */
export function isMember(
  {
    standing,
    engines,
  }: { readonly standing: Standing; readonly engines: { store(): Pick<EventStore, 'end'> } },
  position: Position,
): boolean {
  if (standing.isMember(sinceBoot.now(), position)) return true;
  const store = engines.store();
  if (store.end === undefined) return false;
  try {
    return position >= store.end();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return false;
  }
}
