import type { Position } from '../../../event-store/event-store.ts';
import type { Database } from '../../../sqlite/database.ts';
import type { Bounds, Segment } from '../view-builds.ts';

/** Where the log may be split, and how far each part was applied. What writes must be called within a write transaction. */
export class Segments {
  readonly #statements: ReturnType<typeof prepareStatements>;

  constructor(db: Database) {
    this.#statements = prepareStatements(db);
  }

  all(): Segment[] {
    return this.#statements.all.all().map(toSegment);
  }

  plan(bounds: readonly Bounds[]): void {
    for (const { after, upTo } of bounds) this.#statements.plan.run({ after, upTo });
  }

  /** False where there is no such segment. */
  move({ upTo, position, events }: Omit<Segment, 'after'>): boolean {
    return this.#statements.move.run(position, events, upTo).changes === 1;
  }

  noteBound(position: Position): void {
    const row = this.#statements.around.get({ position });
    if (row === undefined) {
      this.#statements.append.run({ position });
      return;
    }
    const { after, upTo, position: applied, events } = toSegment(row);
    if (upTo === position) return;
    this.#statements.insert.run(position, after, Math.min(applied, position), events);
    this.#statements.shorten.run(position, Math.max(applied, position), upTo);
  }

  clear(): void {
    this.#statements.clear.run();
  }
}

function prepareStatements(db: Database) {
  return {
    all: db.prepare('SELECT * FROM segments ORDER BY up_to'),
    plan: db.prepare(
      `INSERT INTO segments SELECT $upTo, $after, $after, 0
       WHERE NOT EXISTS (SELECT 1 FROM segments WHERE after < $upTo AND up_to > $after)`,
    ),
    move: db.prepare('UPDATE segments SET position = max(position, ?), events = events + ? WHERE up_to = ?'),
    around: db.prepare('SELECT * FROM segments WHERE after < $position AND up_to >= $position'),
    append: db.prepare(
      `INSERT INTO segments
       SELECT $position, coalesce(max(up_to), 0), $position, 0 FROM segments HAVING $position > coalesce(max(up_to), 0)`,
    ),
    insert: db.prepare('INSERT INTO segments (up_to, after, position, events) VALUES (?, ?, ?, ?)'),
    shorten: db.prepare('UPDATE segments SET after = ?, position = ?, events = 0 WHERE up_to = ?'),
    clear: db.prepare('DELETE FROM segments'),
  };
}

function toSegment(row: Readonly<Record<string, unknown>>): Segment {
  return {
    after: row.after as number,
    upTo: row.up_to as number,
    position: row.position as number,
    events: row.events as number,
  };
}
