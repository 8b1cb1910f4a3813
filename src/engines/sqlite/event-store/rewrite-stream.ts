import { world } from '../../../base/world.ts';
import { jsonText } from '../../../event-store/new-event.ts';
import type { RecordedEvent } from '../../../event-store/recorded-event.ts';
import type { Database } from '../driver/database.ts';

/**
 * Puts the data of these events in the place of what their stream has, and another id where it differs; false where they
 * are not all of it.
 */
export function rewriteStream(db: Database, events: readonly RecordedEvent[]): Promise<boolean> {
  const { stream, revision: last } = events.at(-1) ?? {};
  const newest = db.prepare('SELECT max(revision) AS revision FROM events WHERE stream = ?');
  const update = db.prepare(
    'UPDATE events SET data = ?1, id = ?2 WHERE stream = ?3 AND revision = ?4 AND data <> ?1',
  );
  return db.write(() => {
    if (stream === undefined || newest.get(stream)?.revision !== last) return false;
    db.prepare('INSERT INTO rewriting VALUES (?)').run(stream);
    for (const { data, revision } of events) update.run(jsonText(data), world.randomUUID(), stream, revision);
    db.exec('DELETE FROM rewriting');
    return true;
  });
}
