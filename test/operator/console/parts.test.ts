import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DAY_MS } from '../../../src/domain/values/date-time.ts';
import { chart } from '../../../src/operator/console/html/charts.ts';
import { html, render } from '../../../src/operator/console/html/html.ts';
import { show } from '../../../src/operator/console/html/parts.ts';
import { type Cell, time } from '../../../src/operator/print/document.ts';

const ASSETS = join(import.meta.dirname, '../../../src/operator/console/assets');

test('on a phone a row of a table is a card, and a command stands below what it does', () => {
  const [, phone = ''] = readFileSync(join(ASSETS, 'console.css'), 'utf8').split('@media (max-width: 640px)');
  expect(phone).toMatch(/tbody tr \{\s*display: flex;\s*flex-wrap: wrap;/);
  expect(phone).toMatch(/td\[data-head\]::before \{\s*content: attr\(data-head\)/);
  expect(phone).toMatch(/\.commands dl > div \{\s*grid-template-columns: minmax\(0, 1fr\);/);
});

test('a time has one form, alone and within a sentence', () => {
  const shown = '2026-09-03 08:15:30Z</time>';
  const of = (cell: Cell): string => render(html`<p>${show(cell)}</p>`);
  expect(of(time(Date.parse('2026-09-03T08:15:30.250Z')))).toContain(shown);
  const sentence = of('its profile ended at 2026-09-03T08:15:30.250Z, and <b> is text');
  expect(sentence).toContain(
    `ended at <time datetime="2026-09-03T08:15:30.250Z" title="2026-09-03T08:15:30.250Z">${shown}, and &lt;b> is`,
  );
});

test('a chart shows when it begins and ends, and an empty one shows no time', () => {
  const of = (...atMs: number[]): string => {
    const points = atMs.map((at) => ({ atMs: at, values: [1] }));
    return render(chart({ id: 'c', title: 'T', note: '', kind: 'dots', series: [], points }));
  };
  const startMs = Date.parse('2026-09-03T08:00:00.000Z');
  expect(of(startMs, startMs + 600_000)).toMatch(/class="axis".*08:00:00Z.*08:05:00Z.*08:10:00Z/);
  expect(of(startMs, startMs + 3 * DAY_MS)).toMatch(/class="axis".*2026-09-03<.*2026-09-06</);
  expect(of()).not.toContain('axis');
});
