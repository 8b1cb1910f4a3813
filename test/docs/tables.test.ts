import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type AlertRule, madeTables, withTable } from '../../tools/doc-tables/doc-tables.ts';
import { readDocument } from '../support/documents.ts';

const { groups } = parse(readDocument('docs/monitoring/alerts.yaml')) as {
  groups: { rules: AlertRule[] }[];
};
const tables = madeTables(groups.flatMap(({ rules }) => rules));

describe('the tables that documents have from the code', () => {
  it.each(tables)('are as npm run docs:tables makes them: $name in $page', (table) => {
    const page = readDocument(table.page);
    expect(page).toBe(withTable(page, table));
  });

  it('are refused by a page that has no place for them', () => {
    const table = { page: 'README.md', name: 'metrics', text: () => '' };
    expect(() => withTable('text', table)).toThrow('no place for the table metrics');
  });
});
