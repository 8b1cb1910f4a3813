import { join } from 'node:path';
import { openBare } from './bare-database.ts';

const BATCH = 500;

/**
 * Reads and parses every event of the log, every row of the view and every delivery of a data directory, without
 * comparing.
 */
const [folder = ''] = process.argv.slice(2);
const events = readAll(
  'events.db',
  'SELECT * FROM events WHERE position > ? ORDER BY position LIMIT ?',
  'position',
);
const rows = readAll(
  'transactions-1.db',
  'SELECT * FROM transactions_1 WHERE id > ? ORDER BY id LIMIT ?',
  'id',
);
const deliveries = readAll(
  'deliveries.db',
  'SELECT * FROM deliveries LEFT JOIN "deliveries aside record" USING (_row) WHERE _row > ? ORDER BY _row LIMIT ?',
  '_row',
);
process.stdout.write(`${JSON.stringify({ events, rows, deliveries })}\n`);

function readAll(file: string, sql: string, key: string): number {
  const db = openBare(join(folder, file), 'NORMAL');
  const select = db.prepare(sql);
  let count = 0;
  for (let after = -1; ; ) {
    const batch = select.all(after, BATCH);
    const last = batch.at(-1);
    if (last === undefined) break;
    for (const { data, metadata } of batch) {
      if (typeof data === 'string') JSON.parse(data);
      if (typeof metadata === 'string') JSON.parse(metadata);
    }
    count += batch.length;
    after = last[key] as number;
  }
  db.close();
  return count;
}
