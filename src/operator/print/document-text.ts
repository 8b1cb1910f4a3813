import { printableLine } from '../../base/printable.ts';
import {
  type Cell,
  type Column,
  type Fact,
  NOTHING,
  type Part,
  partsOf,
  type Shown,
  type Table,
  tableOf,
  withinSentence,
} from './document.ts';

const INDENT = '  ';
/** The number of spaces between two columns. */
const GAP = 2;

/** The width of a terminal in characters; unlimited unless given. */
interface Terminal {
  readonly width?: number | undefined;
}

/** Shows a document as text. */
export function documentText(document: object, { width, ...shown }: Shown & Terminal = {}): string {
  return partsOf(document, shown)
    .map((part) => partText(part, width))
    .join('\n\n');
}

export function textOf(cell: Cell): string {
  if (typeof cell !== 'object') return printableLine(String(cell));
  if ('time' in cell) return cell.time;
  if ('state' in cell) return printableLine(cell.state);
  if ('noun' in cell) return printableLine(String(cell.id));
  return membersText(cell.members);
}

function membersText(members: readonly Fact[]): string {
  return members
    .map(([name, value]) => (name === 'details' ? textOf(value) : `${name} ${textOf(value)}`))
    .join(', ');
}

function partText(part: Part, width: number | undefined): string {
  const { caption } = part;
  const within = width === undefined ? undefined : width - INDENT.length;
  const lines = 'facts' in part ? factLines(part.facts) : tableLines(part, { widths: [], width: within });
  return caption === undefined
    ? lines.join('\n')
    : [caption, ...lines.map((line) => INDENT + line)].join('\n');
}

export function factLines(facts: readonly Fact[]): string[] {
  const width = widest(facts.map(([name]) => name));
  return facts.map(([name, value]) => `${name.padEnd(width)}  ${textOf(value)}`.trimEnd());
}

interface Layout extends Terminal {
  /** The widths of the columns, which grow with their contents. */
  readonly widths: number[];
  /** The number of columns that fit beside each other. */
  fitting?: number;
}

/** Returns the heads and the rows. Columns that do not fit are listed below each row, by name. */
function tableLines({ columns, rows }: Table, layout: Layout): string[] {
  const { widths, width = Number.POSITIVE_INFINITY } = layout;
  const lines = [columns.map(({ head }) => head), ...rows.map(({ cells }) => cells.map(textOf))];
  for (const at of columns.keys())
    widths[at] = Math.max(widths[at] ?? 0, widest(lines.map((cells) => cells[at] ?? '')));
  layout.fitting ??= fittingIn(width, widths);
  const { fitting } = layout;
  return lines.flatMap((cells, row) => {
    const padded = cells
      .slice(0, fitting)
      .map((text, at) =>
        columns[at]?.isNumber ? text.padStart(widths[at] ?? 0) : text.padEnd(widths[at] ?? 0),
      );
    const line = padded.join('  ').trimEnd();
    const below = row === 0 ? '' : belowText(columns, rows[row - 1]?.cells ?? [], fitting);
    return below === '' ? [line] : [line, `${INDENT}${below}`];
  });
}

function belowText(columns: readonly Column[], cells: readonly Cell[], from: number): string {
  const facts = columns.map(({ head }, at): Fact => [withinSentence(head), cells[at] ?? NOTHING]);
  return membersText(facts.slice(from).filter(([, value]) => value !== NOTHING));
}

/** Returns how many columns fit: at least one. */
function fittingIn(width: number, widths: readonly number[]): number {
  let end = -GAP;
  const first = widths.findIndex((each) => {
    end += GAP + each;
    return end > width;
  });
  return first === -1 ? Number.POSITIVE_INFINITY : Math.max(1, first);
}

function widest(texts: readonly string[]): number {
  return texts.reduce((most, { length }) => Math.max(most, length), 0);
}

/** Formats a list whose end is not known yet. The first documents decide which columns it has. */
export class ListText {
  readonly #shown: Shown;
  readonly #layout: Layout;
  #columns: readonly string[] | undefined;

  constructor({ width, ...shown }: Shown & Terminal) {
    this.#shown = shown;
    this.#layout = { widths: [], width };
  }

  /** Returns lines for these documents. The first call also returns the heads of the columns. */
  linesOf(documents: readonly object[]): string[] {
    const columns = this.#columns;
    const table = tableOf('', documents, { ...this.#shown, ...(columns && { columns }) });
    this.#columns = columns ?? table.columns.flatMap(({ name }) => (name === '' ? [] : [name]));
    return tableLines(table, this.#layout).slice(columns === undefined ? 0 : 1);
  }
}
