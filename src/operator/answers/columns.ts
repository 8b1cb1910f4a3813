import { printableLine } from '../../base/printable.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';

export type Noun = 'account' | 'key' | 'webhook' | 'delivery' | 'transaction';
export type Tone = 'good' | 'bad' | 'warn' | 'quiet';

/** What a terminal prints as text, and a page as a time, a badge, a meter or a link. */
export type Mark =
  | { readonly time: string }
  | { readonly state: string; readonly tone: Tone }
  | { readonly percent: number }
  | Link;
export interface Link {
  readonly noun: Noun;
  readonly id: string | number;
  readonly text: string;
}
export type Cell = string | number | Mark | readonly Cell[];

/** A column of a list of documents, or a line about one of them. */
export interface Column<D> {
  readonly head: string;
  readonly cell: (document: D) => Cell;
  /** Numbers stand below each other. */
  readonly number?: true;
  /** Characters that it gets in a list in a terminal. */
  readonly width?: number;
}

/** A part of what is shown about one thing. */
export type Section = Facts | Table;

export interface Facts {
  readonly facts: readonly (readonly [name: string, value: Cell])[];
}

export interface Table {
  readonly caption: string;
  readonly columns: readonly Pick<Column<never>, 'head' | 'number'>[];
  readonly count: number;
  /** The cells of the first rows, each row with what it is about. */
  readonly rows: (limit: number) => readonly { readonly id: string; readonly cells: readonly Cell[] }[];
  /** Said where there is no row. */
  readonly empty: string;
}

export function facts<D>(columns: readonly Column<D>[], document: D): Facts {
  return { facts: columns.map(({ head, cell }) => [head, cell(document)]) };
}

/** `idOf` names a row the same in every refresh of a page. */
export function table<D>(
  caption: string,
  columns: readonly Column<D>[],
  options: {
    readonly of: readonly D[];
    readonly idOf?: (document: D) => string | number;
    readonly empty: string;
  },
): Table {
  const { of, idOf, empty } = options;
  const [name = ''] = caption.toLowerCase().split(' ');
  const rowOf = (document: D, at: number) => ({
    id: `${name}-${idOf?.(document) ?? at}`,
    cells: columns.map(({ cell }) => cell(document)),
  });
  return { caption, columns, count: of.length, rows: (limit) => of.slice(0, limit).map(rowOf), empty };
}

/** An ISO date-time, or milliseconds; to the second on a page. */
export function time(at: string | number | null | undefined): Cell {
  if (at === null || at === undefined) return '–';
  return { time: typeof at === 'number' ? formatDateTime(at) : at };
}

const TONES: Readonly<Record<string, Tone>> = {
  delivered: 'good',
  active: 'good',
  on: 'good',
  shown: 'good',
  access: 'good',
  'no access': 'warn',
  removed: 'warn',
  failing: 'warn',
  held: 'warn',
  failed: 'bad',
  disabled: 'bad',
  parked: 'bad',
  unreadable: 'bad',
};

/** A state in a word; its colour says nothing that the word does not. */
export function state(name: string, tone: Tone = TONES[name] ?? 'quiet'): Mark {
  return { state: name, tone };
}

export function link(noun: Noun, id: string | number, text = String(id)): Link {
  return { noun, id, text };
}

export function textOf(cell: Cell): string {
  if (typeof cell !== 'object') return printableLine(String(cell));
  if ('time' in cell) return cell.time;
  if ('state' in cell) return cell.state;
  if ('percent' in cell) return `${cell.percent} %`;
  if ('noun' in cell) return printableLine(cell.text);
  return cell
    .map(textOf)
    .filter((part) => part !== '')
    .join(' ');
}

/** The heads of a list in a terminal. */
export function headsText(columns: readonly Column<never>[]): string {
  return lineText(
    columns.map(({ head }) => head),
    columns,
  );
}

/** One line of a list in a terminal. */
export function rowText<D>(columns: readonly Column<D>[], document: D): string {
  return lineText(
    columns.map(({ cell }) => textOf(cell(document))),
    columns,
  );
}

/** What is longer than its column takes its place. */
function lineText(
  cells: readonly string[],
  columns: readonly { readonly number?: true; readonly width?: number }[],
): string {
  const padded = columns.map(({ number, width = 0 }, at) => {
    const text = cells[at] ?? '';
    return number ? text.padStart(width) : text.padEnd(width);
  });
  return padded.join('  ').trimEnd();
}

/** What is shown about one thing, for a terminal. */
export function sectionsText(sections: readonly Section[]): string {
  return sections
    .map((section) => ('facts' in section ? factsText(section) : tableText(section)))
    .join('\n\n');
}

function factsText({ facts: lines }: Facts): string {
  const width = lines.reduce((most, [name]) => Math.max(most, name.length), 0);
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${textOf(value)}`.trimEnd()).join('\n');
}

function tableText({ caption, columns, count, rows, empty }: Table): string {
  if (count === 0) return `${caption}: ${empty}`;
  const cells = rows(count).map((row) => row.cells.map(textOf));
  const sized = columns.map(({ head, number }, at) => ({
    ...(number && { number }),
    width: cells.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), head.length),
  }));
  const lines = [columns.map(({ head }) => head), ...cells].map((row) => lineText(row, sized));
  return [caption, ...lines.map((text) => `  ${text}`)].join('\n');
}
