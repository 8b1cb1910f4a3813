import type { Clock } from '../clock.ts';
import { accountStream } from '../domain/account-events.ts';
import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { FuelError } from '../errors.ts';
import { RESTORE_EVENTS } from '../event-store/damage.ts';
import { type EventStore, isDamaged } from '../event-store/event-store.ts';
import { type Author, newEvent } from '../event-store/new-event.ts';
import { loadDirectory } from './directory/load-directory.ts';
import { skippedBy } from './directory/skipped-events.ts';

/**
 * Has an account judged without the event that closed it. Returns whether that is new: an event is skipped once. Rejects
 * with `REFUSED` where no account is closed by an event at this position, or its bytes are damaged.
 */
export async function skipEvent(
  store: EventStore,
  position: number,
  { author, reason, clock }: { readonly author: Author; readonly reason: string; readonly clock: Clock },
): Promise<boolean> {
  const operations = await store.readStream(OPERATIONS_STREAM);
  const isKnown = operations.some(
    (event) => skippedBy(event) !== undefined && (event.data as { position: unknown }).position === position,
  );
  if (isKnown) return false;
  const directory = await loadDirectory(store);
  const account = Iterator.from(directory.accounts()).find(
    ({ unreadable }) => unreadable?.position === position,
  );
  const stream = account && accountStream(account.id);
  const event = stream && (await store.readStream(stream)).find((each) => each.position === position);
  if (event === undefined || event === '') {
    throw new FuelError(
      'REFUSED',
      `no account is closed by an event at position ${position}: fuel account show names the position. A parked event ` +
        'of a transaction has no effect, and needs not be skipped',
    );
  }
  if (isDamaged(event)) {
    throw new FuelError(
      'REFUSED',
      `its bytes are damaged, and it may have switched something off: ${RESTORE_EVENTS}`,
    );
  }
  const data = { position, stream: event.stream, revision: event.revision, reason };
  const skipped = newEvent({ type: 'ParkedSkipped', data }, author, clock.now());
  await store.append([{ stream: OPERATIONS_STREAM, expected: 'any', events: [skipped] }]);
  return true;
}
