import { describe, expect, test } from 'vitest';
import { render } from '../../../src/operator/console/html/html.ts';
import { content, documentOf, listOf } from '../../../src/operator/console/html/parts.ts';
import { documentText, ListText } from '../../../src/operator/print/document-text.ts';

const AT = '2026-09-03T08:15:30.123Z';
const ada = { id: 7, name: 'Ada', speed: '12.5', state: 'active', left_at: AT, reason: null };
const bee = { id: 12, name: '', speed: '7', state: 'disabled', left_at: null, reason: null };

describe('a document as text', () => {
  test('has its scalars as facts, an object as facts under its name, and an array of objects as a table', () => {
    const document = {
      ...{
        id: 7,
        is_open: true,
        lag_seconds: 130,
        duration_ms: 5,
        contacts: [],
        keys: ['a', 'b'],
        none: null,
      },
      closed: { reason: 'over', since: AT },
      ships: [ada, bee],
      empty: [],
    };
    expect(documentText(document, { id: 'account' })).toBe(`Account   7
Is open   yes
Lag       2 min
Duration  5 ms
Contacts  none
Keys      a, b
None      –
Empty     none

Closed
  Reason  over
  Since   ${AT}

Ships
  Id  Name  Speed  State     Left
   7  Ada    12.5  active    ${AT}
  12  –         7  disabled  –`);
  });

  test('shows each object of a list as facts if it contains objects', () => {
    const attempts = [{ number: 1, error: { kind: 'cut', detail: 'reset', code: null } }];
    expect(documentText({ attempts })).toBe(
      'Attempts, 1 of 1\n  Number  1\n  Error   kind cut, detail reset',
    );
  });

  test('puts members that only some documents of a list have into a last column, by name', () => {
    const timeline = [
      { at: AT, what: 'event', revision: 0 },
      { at: AT, what: 'not_sent', key: 'aaaaaaaaaa', reason: 'off' },
    ];
    expect(documentText({ timeline })).toBe(
      `Timeline\n  At                        What      Details\n  ${AT}  event     revision 0\n  ${AT}  not sent  key aaaaaaaaaa, reason off`,
    );
  });

  test('shows characters that control a terminal, without effect', () => {
    expect(documentText({ name: 'a\u001b[2J\nb', more: [{ a: '\u202e' }] })).toContain('a\\u001b[2J\\u000ab');
    expect(documentText({ more: [{ a: '\u202e' }] })).toContain('\\u202e');
  });
});

test('a list of unknown length has the columns of its first documents, and names other members of later ones', () => {
  const list = new ListText({ id: 'account' });
  expect(list.linesOf([ada])).toEqual([
    'Account  Name  Speed  State   Left',
    `7        Ada    12.5  active  ${AT}`,
  ]);
  expect(list.linesOf([{ ...bee, reason: 'gone' }])).toEqual([
    '12       –         7  disabled  –                         reason gone',
  ]);
});

test('columns that do not fit into a terminal are listed below each row, by name', () => {
  const list = new ListText({ id: 'account', width: 21 });
  expect(list.linesOf([ada, bee])).toEqual([
    'Account  Name  Speed',
    '7        Ada    12.5',
    `  state active, left ${AT}`,
    '12       –         7',
    '  state disabled',
  ]);
  expect(documentText({ ships: [ada] }, { width: 4 })).toBe(
    `Ships\n  Id\n   7\n    name Ada, speed 12.5, state active, left ${AT}`,
  );
});

describe('a document on a page', () => {
  const rowsOf = (of: readonly object[]): string =>
    render(content(listOf('Ships in port', of, { id: 'account' })));

  test('has the same members, with links, badges and times', () => {
    const page = rowsOf([ada, bee]);
    for (const head of ['Account', 'Name', 'Speed', 'State', 'Left']) expect(page).toContain(`>${head}</th>`);
    expect(page).toContain('<tr id="ships-7"><td data-head="Account"><a href="/accounts/7">7</a></td>');
    expect(page).toContain('<td class="number" data-head="Speed">12.5</td>');
    expect(page).toContain('<span class="badge good">active</span>');
    expect(page).toContain(`title="${AT}">2026-09-03 08:15:30Z</time>`);
    expect(page).toContain('<td class="nothing" data-head="Name">–</td>');
    expect(render(documentOf({ left_at: null, of: { key: 'k' } }, 'Ship'))).toMatch(
      /<h2>Ship<\/h2>.*<dt>Left<\/dt><dd>–<\/dd>.*<h2>Of<\/h2>.*<a href="\/keys\/k">/s,
    );
  });

  test('shows the first hundred rows, and how many there are', () => {
    const many = Array.from({ length: 1_001 }, (_, id) => ({ ...ada, id }));
    expect(rowsOf(many).match(/<tr id=/g)).toHaveLength(100);
    expect(rowsOf(many)).toContain('The first 100 of 1,001.');
    expect(rowsOf(many.slice(0, 100))).not.toContain('The first');
    expect(rowsOf([])).toContain('<td class="empty">none</td>');
  });
});
