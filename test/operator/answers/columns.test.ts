import { describe, expect, test } from 'vitest';
import {
  type Column,
  facts,
  headsText,
  link,
  rowText,
  sectionsText,
  state,
  table,
  time,
} from '../../../src/operator/answers/columns.ts';
import { render } from '../../../src/operator/console/html/html.ts';
import { content } from '../../../src/operator/console/html/parts.ts';

interface Ship {
  readonly id: number;
  readonly name: string;
  readonly at: string | null;
}
const COLUMNS: readonly Column<Ship>[] = [
  { head: 'Id', number: true, width: 4, cell: ({ id }) => link('account', id) },
  { head: 'Name', width: 6, cell: ({ name }) => [state('on'), name] },
  { head: 'Left', cell: ({ at }) => time(at) },
];
const ada = { id: 7, name: 'Ada', at: '2026-09-03T08:15:30.123Z' };
const none = { id: 12, name: '', at: null };
const ships = (of: readonly Ship[]) =>
  table('Ships in port', COLUMNS, { of, idOf: ({ id }) => id, empty: 'There is none.' });

describe('an answer as text', () => {
  test('has a list with its heads above, and what is longer than its column takes its place', () => {
    expect([headsText(COLUMNS), rowText(COLUMNS, ada), rowText(COLUMNS, none)]).toEqual([
      '  Id  Name    Left',
      '   7  on Ada  2026-09-03T08:15:30.123Z',
      '  12  on      –',
    ]);
    expect(rowText(COLUMNS, { ...ada, id: 70_000 })).toBe('70000  on Ada  2026-09-03T08:15:30.123Z');
  });

  test('has facts by their names, and tables as wide as what is in them', () => {
    expect(sectionsText([facts(COLUMNS, none), ships([ada, none]), ships([])])).toBe(
      `Id    12
Name  on
Left  –

Ships in port
  Id  Name    Left
   7  on Ada  2026-09-03T08:15:30.123Z
  12  on      –

Ships in port: There is none.`,
    );
  });

  test('shows what steers a terminal, and does nothing', () => {
    expect(rowText(COLUMNS, { ...ada, name: 'a\u001b[2J\nb' })).toContain('a\\u001b[2J\\u000ab');
  });
});

describe('an answer on a page', () => {
  const shown = (of: readonly Ship[]): string => render(content(ships(of)));

  test('has the same columns, with links, badges and times', () => {
    const page = shown([ada]);
    for (const { head } of COLUMNS) expect(page).toContain(`>${head}</th>`);
    expect(page).toContain(
      '<tr id="ships-7"><td class="number" data-head="Id"><a href="/accounts/7">7</a></td>',
    );
    expect(page).toContain('<span class="badge good">on</span>');
    expect(page).toContain(`title="${ada.at}">2026-09-03 08:15:30Z</time>`);
    expect(render(content(facts(COLUMNS, none)))).toContain('<dt>Left</dt><dd>–</dd>');
  });

  test('shows the first hundred rows, and how many there are', () => {
    const many = Array.from({ length: 1_001 }, (_, id) => ({ ...ada, id }));
    expect(shown(many).match(/<tr id=/g)).toHaveLength(100);
    expect(shown(many)).toContain('The first 100 of 1,001.');
    expect(shown(many.slice(0, 100))).not.toContain('The first');
    expect(shown([])).toContain('There is none.');
  });
});
