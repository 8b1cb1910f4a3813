import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type AlertRule, madeTables, withTable } from './doc-tables.ts';

// Writes the tables of documents that are made from the code.

const root = join(import.meta.dirname, '../..');
const alerts = parse(readFileSync(join(root, 'docs/monitoring/alerts.yaml'), 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly AlertRule[] }[];
};
for (const table of madeTables(alerts.groups.flatMap(({ rules }) => rules))) {
  const path = join(root, table.page);
  writeFileSync(path, withTable(readFileSync(path, 'utf8'), table));
}
