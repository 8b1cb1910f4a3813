import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readDisk } from '../../src/base/disk/disk.ts';
import { errorCodes } from '../../src/base/errors.ts';
import { showConfig, unknownSettings } from '../../src/engines/engines.ts';
import { type RefusalCode, refusalAnswer, refusals } from '../../src/pull/answers.ts';
import { readParameters } from '../../src/pull/parameters.ts';
import type { ShownState } from '../../src/push/held.ts';
import type { FailureKind } from '../../src/push/queue/delivery.ts';
import { addDiskMetrics, addReadiness, createMetrics } from '../../src/service/ops/metrics.ts';
import { documents, inlineCodeOf, readDocument, readOperations, sectionOf } from '../support/documents.ts';

const refusalCodes = Object.keys(refusals) as RefusalCode[];

const ROOT = join(import.meta.dirname, '../..');
const ERRORS = readDocument('docs/errors.md');
const CURES = readDocument('docs/guide/errors.md');
const OPERATIONS = readOperations();

// These are records, so that the compiler names a missing member.
const KINDS: Record<FailureKind, true> = {
  dns: true,
  forbidden: true,
  connect: true,
  tls: true,
  timeout: true,
  protocol: true,
  status: true,
  cut: true,
  proxy: true,
  fault: true,
};
const STATES: Record<ShownState, true> = {
  pending: true,
  held: true,
  delivered: true,
  failed: true,
  withdrawn: true,
};

describe('docs/guide/errors.md', () => {
  it('has a row for each code that a client can get, with its status, and no other', () => {
    const rows = rowsOf(sectionOf(CURES, '## Error codes'));
    const documented = rows.map(([status, code]) => `${status} ${codeIn(code)}`);
    const real = refusalCodes.map((code) => `${refusalAnswer({ code }, 'x').status} ${code}`);
    expect(documented.toSorted()).toEqual(real.toSorted());
  });

  it('has a row for each text that `fields` can have, under its parameter, and no other', () => {
    const rows = rowsOf(sectionOf(CURES, '## Texts in `fields`'));
    const documented = rows.flatMap(([names = '', texts = '']) =>
      (names === 'any' ? ['any'] : inlineCodeOf(names)).flatMap((name) =>
        inlineCodeOf(texts).map((text) => `${name}: ${text}`),
      ),
    );
    expect(documented.toSorted()).toEqual([...fieldTexts()].toSorted());
  });
});

describe('docs/errors.md', () => {
  it('has a row for each code that a command can end with, and no other', () => {
    const section = sectionOf(ERRORS, '## Errors of commands and `fuel serve`');
    const rows = rowsOf(section.slice(0, section.indexOf('| Command |')));
    expect(rows.map(([code]) => codeIn(code)).toSorted()).toEqual(Object.keys(errorCodes).toSorted());
  });

  it('has a row for each kind of failed attempt, and no other', () => {
    const rows = rowsOf(sectionOf(ERRORS, '## Why an attempt failed'));
    expect(rows.map(([kind]) => codeIn(kind)).toSorted()).toEqual(Object.keys(KINDS).toSorted());
  });

  it('quotes reasons as they are recorded', () => {
    const quoted = inlineCodeOf(sectionOf(ERRORS, '## Why a delivery ended without an attempt')).filter(
      isPhrase,
    );
    expect(quoted.length).toBeGreaterThan(8);
    expect(quoted.filter((text) => !isPrinted(text))).toEqual([]);
  });
});

describe('the pages of docs/operations', () => {
  it('quotes messages as they are printed, and their own headings as they are', () => {
    const bold = [...OPERATIONS.matchAll(/\*\*(.*?)\*\*/gs)].map(([, text = '']) => text);
    const heads = [...OPERATIONS.matchAll(/^(.*)\n\|---/gm)].map(([, row = '']) => row);
    const titles = [...OPERATIONS.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => title);
    const headings = [...bold, ...heads, ...titles].join('\n');
    const paragraphs = OPERATIONS.replace(/^```.*?^```$/gms, '')
      .replace(/`[^`]*`/g, '')
      .split(/\n(?=\n|\|)/);
    const quoted = paragraphs.flatMap((text) =>
      [...text.replace(/\s+/g, ' ').matchAll(/"([^"]+)"/g)].map(([, quote = '']) => quote),
    );
    expect(quoted.length).toBeGreaterThan(8);
    expect(quoted.filter((text) => !isPrinted(text) && !headings.includes(text))).toEqual([]);
  });

  it('quotes lines of the log as they are logged', () => {
    const quoted = inlineCodeOf(OPERATIONS)
      .filter(isPhrase)
      .filter((text) => !isCommand(text));
    expect(quoted).toEqual(expect.arrayContaining(['certificate reloaded', 'account unreadable']));
    expect(quoted.filter((text) => !isPrinted(text))).toEqual([]);
  });

  it('has a row for each metric, with its labels, and no other', () => {
    const { registry, counted } = createMetrics();
    addReadiness(registry, async () => ({ ready: true }));
    addDiskMetrics(registry, () => readDisk('/'));
    const own = [registry, counted]
      .flatMap((each) => each.getMetricsAsArray())
      .filter(({ name }) => name.startsWith('fuel_'));
    const real = own.map((metric) => {
      const { labelNames } = metric as unknown as { readonly labelNames: readonly string[] };
      return labelNames.length === 0 ? metric.name : `${metric.name}{${labelNames.join(',')}}`;
    });
    const documented = rowsOf(sectionOf(OPERATIONS, '## Watching'))
      .map(([metric]) => codeIn(metric))
      .filter((name) => name.startsWith('fuel_'));
    expect(documented.toSorted()).toEqual(real.toSorted());
  });

  it('has a row for each state of a delivery, and no other', () => {
    const section = sectionOf(OPERATIONS, '## Webhooks');
    const rows = rowsOf(section.slice(section.indexOf('| State |')));
    expect(rows.map(([state]) => codeIn(state)).toSorted()).toEqual(Object.keys(STATES).toSorted());
  });

  it('has a row for each setting, with its default, and no other', () => {
    const { settings } = showConfig({});
    const rows = rowsOf(sectionOf(OPERATIONS, '## Settings'));
    const documented = rows.flatMap(([names = '', fallback = '']) =>
      inlineCodeOf(names).map((name) => ({ name, fallback: inlineCodeOf(fallback)[0] })),
    );
    expect(documented.map(({ name }) => name).toSorted()).toEqual(
      settings.map(({ name }) => name).toSorted(),
    );
    const differing = documented.filter(({ name, fallback }) => {
      const real = settings.find((setting) => setting.name === name)?.value;
      return fallback !== undefined && fallback !== real;
    });
    expect(differing).toEqual([]);
  });
});

it('the documents name only settings that exist', () => {
  const named = documents().flatMap(
    (page) => readDocument(page).match(/\bFUEL_[A-Z_]*[A-Z]\b(?!_\*)/g) ?? [],
  );
  expect(named.length).toBeGreaterThan(50);
  const unknown = unknownSettings(Object.fromEntries(named.map((name) => [name, 'x'])));
  expect(unknown.map(({ name }) => name)).toEqual([]);
});

/** Returns what `fields` says about each fault of a query, with its parameter, or `any` if it may be any parameter. */
function fieldTexts(): Set<string> {
  const range = 'from=2026-09-01T00:00:00Z&to=2026-09-02T00:00:00Z';
  const ids = Array.from({ length: 1_001 }, (_, id) => id).join(',');
  const queries = [
    '',
    'from=x&to=y',
    'from=2026-09-02T00:00:00Z&to=2026-09-01T00:00:00Z',
    'from=2026-09-02T00:00:00Z&to=2026-12-01T00:00:00Z',
    'corporate_group_id=x',
    'corporate_id=x',
    `corporate_id=${ids}`,
    'status=x',
    'limit=x',
    'limit=0',
    'limit=101',
    'cursor=malformed',
    'cursor=other',
    'x=1',
    'limit=1&limit=1',
    'limit=',
  ].map((query, index) => (index < 4 ? query : `${range}&${query}`));
  const found = queries.flatMap((query) => {
    const reading = readParameters(query, (text) => (text === 'other' ? 'other filters' : 'malformed'));
    return reading.ok ? [] : Object.entries(reading.fields);
  });
  const ofAny = ['unknown parameter', 'must be given only once', 'must not be empty'];
  return new Set(found.map(([name, text]) => `${ofAny.includes(text) ? 'any' : name}: ${text}`));
}

/** Returns the cells of each row of the section's tables, without the heads. */
function rowsOf(section: string): string[][] {
  return [...section.matchAll(/^\|(.*)\|$/gm)]
    .map(([, row = '']) => row.split('|').map((cell) => cell.trim()))
    .filter((cells, index, all) => !isRule(cells) && !isRule(all[index + 1] ?? []));
}

function isRule(cells: readonly string[]): boolean {
  return cells[0]?.startsWith('---') === true;
}

function codeIn(cell = ''): string {
  return inlineCodeOf(cell)[0] ?? '';
}

/** True for several words that begin with an English word, which are neither a name nor a setting. */
function isPhrase(code: string): boolean {
  return /^[a-z]+ \S/.test(code);
}

function isCommand(code: string): boolean {
  return /^(fuel|docker|cp|fuser|mongodump|mongorestore|openssl|key|webhook) /.test(code);
}

/** True if the program contains the text. `…`, numbers and brackets stand for any value. */
function isPrinted(text: string): boolean {
  const parts = text.split(/…|\([^)]*\)|\d+/).map((part) => part.trim());
  return parts.every((part) => texts().includes(part));
}

let read: string | undefined;

/** Returns every text of the program, without comments. Texts on several lines are joined. */
function texts(): string {
  read ??= globSync('{src,projections}/**/*.ts', { cwd: ROOT })
    .map((path) => readDocument(path))
    .join('\n')
    .replaceAll(/^\s*(?:\/\*\*|\*|\/\/).*$/gm, '')
    .replaceAll(/['`] \+\s*['`]/g, '')
    .replaceAll(/\\'/g, "'");
  return read;
}
