import { formatDateTime } from '../../domain/values/date-time.ts';

/** The things that an operator can look up. */
export type Noun = 'account' | 'key' | 'delivery' | 'transaction';
export type Tone = 'good' | 'bad' | 'warn' | 'quiet';

/** A value that a terminal prints as text, and a page as a time, a badge, a link or a list. */
export type Mark =
  | { readonly time: string }
  | { readonly state: string; readonly tone: Tone }
  | { readonly noun: Noun; readonly id: string | number }
  | { readonly members: readonly Fact[] };
export type Cell = string | number | Mark;
export type Fact = readonly [name: string, value: Cell];

/** A part of a document: facts, or a table. */
export type Part = Facts | Table;
export interface Facts {
  readonly caption?: string | undefined;
  readonly facts: readonly Fact[];
}
export interface Table {
  readonly caption?: string | undefined;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** The number of all rows; the table may have only the first ones. */
  readonly count: number;
}
export interface Column {
  /** The name of the member; empty for the column with all other members. */
  readonly name: string;
  readonly head: string;
  /** True if the column is aligned to the right. */
  readonly isNumber: boolean;
}
export interface Row {
  /** The same each time for the same thing. */
  readonly id: string;
  readonly cells: readonly Cell[];
}

/** How a document is shown: the noun that a member `id` names, and how many rows a table has at most. */
export interface Shown {
  readonly id?: Noun | undefined;
  readonly maxRows?: number;
}

/** Stands for a missing value. */
export const NOTHING = '–';
const MAX_LISTED = 100;
const LINKS: Readonly<Record<string, Noun>> = {
  account: 'account',
  key: 'key',
  prefix: 'key',
  delivery: 'delivery',
  transaction: 'transaction',
  transaction_id: 'transaction',
};
const HEADS: Readonly<Record<string, string>> = { prefix: 'Key', url: 'URL', vat: 'VAT' };
const UNITS = /_(?:at|id|ms|seconds|percent)$/;
const STATES = /(?:^|_)(?:state|effect|what|status)$/;
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
const DECIMAL = /^-?\d+(?:\.\d+)?$/;
const TONES: Readonly<Record<string, Tone>> = {
  delivered: 'good',
  active: 'good',
  on: 'good',
  yes: 'good',
  shown: 'good',
  access: 'good',
  'no access': 'warn',
  failing: 'warn',
  held: 'warn',
  interrupted: 'warn',
  failed: 'bad',
  disabled: 'bad',
  parked: 'bad',
  unreadable: 'bad',
};

/**
 * Returns the parts of a document in the order of its members. Scalars are facts, an object has facts of its own, and an
 * array of objects is a table, or facts for each object if these contain objects themselves.
 */
export function partsOf(document: object, { id, ...within }: Shown = {}): Part[] {
  const facts: Fact[] = [];
  const parts = Object.entries(document).flatMap(([name, value]): Part[] => {
    if (isObject(value)) return partsOf(value, within).map((part) => ({ caption: headOf(name), ...part }));
    if (isList(value)) return listParts(name, value, within);
    if (value !== undefined) facts.push([headOf(name, { id }), cellOf(name, value, { id })]);
    return [];
  });
  return facts.length === 0 ? parts : [{ facts }, ...parts];
}

function listParts(name: string, list: readonly object[], shown: Shown): Part[] {
  if (!list.some((item) => Object.values(item).some(isObject))) return [tableOf(name, list, shown)];
  return list.flatMap((item, at) => {
    const caption = `${headOf(name)}, ${at + 1} of ${list.length}`;
    return [{ caption, facts: factsOf(item, shown) }];
  });
}

/** Returns all members as facts, including those that are objects. */
export function factsOf(document: object, shown: Shown = {}): Fact[] {
  return Object.entries(document).map(([name, value]) => [headOf(name, shown), cellOf(name, value, shown)]);
}

/**
 * Unless the columns are given, they are the members that every document has and at least one has a value for. The last
 * column lists a document's other members by name.
 */
export function tableOf(
  name: string,
  list: readonly object[],
  shown: Shown & { readonly columns?: readonly string[] } = {},
): Table {
  const documents = list.slice(0, shown.maxRows ?? list.length);
  const names = shown.columns ?? columnsOf(documents);
  const details = documents.map((document) =>
    membersOf(Object.entries(document).filter(([of]) => !names.includes(of))),
  );
  const hasDetails = details.some((cell) => cell !== NOTHING);
  const rows = documents.map((document, at) => {
    const cells = names.map((of) => cellOf(of, (document as Record<string, unknown>)[of], shown));
    const last = hasDetails ? [details[at] ?? NOTHING] : [];
    return { id: `${name}-${idOf(document, at)}`.replaceAll(' ', '-'), cells: [...cells, ...last] };
  });
  const columns = names.map((of, at): Column => {
    const cells = rows.map((row) => row.cells[at] ?? NOTHING);
    return { name: of, head: headOf(of, shown), isNumber: cells.some(isNumber) && cells.every(mayBeNumber) };
  });
  const last = hasDetails ? [{ name: '', head: 'Details', isNumber: false }] : [];
  return { caption: headOf(name), columns: [...columns, ...last], rows, count: list.length };
}

function columnsOf(documents: readonly object[]): string[] {
  const [first = {}] = documents;
  return Object.keys(first).filter(
    (name) => documents.every((each) => name in each) && documents.some((each) => hasValue(each, name)),
  );
}

/** `lag_seconds` is shown as `Lag`, `created_at` as `Created`, and an `id` as the noun that it names. */
export function headOf(name: string, { id }: Shown = {}): string {
  if (name === 'id' && id !== undefined) return headOf(id);
  const words = name.length > 'at'.length ? name.replace(UNITS, '') : name;
  const head = HEADS[words] ?? words.replaceAll('_', ' ').replace(/\burl\b/, 'URL');
  return head.charAt(0).toUpperCase() + head.slice(1);
}

/** Returns a head in the form that it has within a sentence. */
export function withinSentence(head: string): string {
  return head.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
}

/** Returns a value in the form that its name asks for. */
export function cellOf(name: string, value: unknown, { id }: Shown = {}): Cell {
  if (value === null || value === undefined || value === '') return NOTHING;
  if (typeof value === 'boolean') return state(value ? 'yes' : 'no');
  if (Array.isArray(value)) return listText(value);
  if (typeof value === 'object') return membersOf(Object.entries(value));
  if (typeof value !== 'string' && typeof value !== 'number') return String(value);
  const noun = name === 'id' ? id : LINKS[name];
  if (noun !== undefined) return { noun, id: value };
  if (typeof value === 'number') return withUnit(name, value);
  if (DATE_TIME.test(value)) return { time: value };
  return STATES.test(name) ? state(value) : value;
}

function withUnit(name: string, value: number): Cell {
  if (name.endsWith('_ms')) return `${value} ms`;
  if (name.endsWith('seconds') || name.startsWith('seconds')) return duration(value);
  return name.endsWith('percent') ? `${value} %` : value;
}

function membersOf(entries: readonly (readonly [string, unknown])[]): Cell {
  const said = entries.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return said.length === 0
    ? NOTHING
    : { members: said.map(([name, value]) => [withinSentence(headOf(name)), plainCell(name, value)]) };
}

/** Members of members are shown as JSON. */
function plainCell(name: string, value: unknown): Cell {
  return isObject(value) ? JSON.stringify(value) : cellOf(name, value);
}

function listText(list: readonly unknown[]): string {
  if (list.length === 0) return 'none';
  const texts = list
    .slice(0, MAX_LISTED)
    .map((each) => (typeof each === 'object' ? JSON.stringify(each) : String(each)));
  const more = list.length > MAX_LISTED ? [`and ${list.length - MAX_LISTED} more`] : [];
  return [...texts, ...more].join(', ');
}

/** Shows a time, given in milliseconds since the epoch. */
export function time(atMs: number | null | undefined): Cell {
  return atMs === null || atMs === undefined ? NOTHING : { time: formatDateTime(atMs) };
}

/** Shows a state as a word. Its colour adds nothing to the word. */
export function state(name: string, tone: Tone = TONES[name] ?? 'quiet'): Mark {
  return { state: name.replaceAll('_', ' '), tone };
}

export function link(noun: Noun, id: string | number): Mark {
  return { noun, id };
}

const DAY = 86_400;

/** `45 s`, `12 min`, `3 h 5 min`, `2 days`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min`;
  if (whole < 2 * DAY) return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
  return `${Math.floor(whole / DAY)} days`;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: unknown): value is readonly object[] {
  return Array.isArray(value) && value.length > 0 && value.every(isObject);
}

function hasValue(document: object, name: string): boolean {
  const value = (document as Record<string, unknown>)[name];
  return value !== null && value !== undefined && value !== '';
}

function isNumber(cell: Cell | undefined): boolean {
  return typeof cell === 'number' || (typeof cell === 'string' && DECIMAL.test(cell));
}

function mayBeNumber(cell: Cell | undefined): boolean {
  return cell === NOTHING || isNumber(cell);
}

function idOf(document: object, at: number): string {
  const { id, prefix, key, position, revision } = document as Record<string, unknown>;
  return String(id ?? prefix ?? key ?? position ?? revision ?? at);
}
