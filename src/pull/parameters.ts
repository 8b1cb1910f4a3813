import { REFERENCES } from '../../projections/transactions.ts';
import { VISIBLE_STATUSES, type VisibleStatus } from '../domain/transaction-events.ts';
import { parseDateTime } from '../domain/values/date-time.ts';
import type { CursorReading, PageFilters } from './cursor.ts';
import type { PageQuery, Place } from './view/transactions-view.ts';

export interface ListQuery extends Omit<PageQuery, 'accountId'> {
  readonly references: {
    readonly corporate_group_id: number | undefined;
    readonly corporate_id: readonly number[] | undefined;
  };
}

export type ParameterReading =
  | { readonly ok: true; readonly query: ListQuery }
  /** The problems by the name of the parameter. */
  | { readonly ok: false; readonly fields: Readonly<Record<string, string>> };

const FILTERS = [...REFERENCES, 'status'] as const;
const PARAMETERS = ['from', 'to', ...FILTERS, 'limit', 'cursor'] as const;
type ParameterName = (typeof PARAMETERS)[number];

const MAX_RANGE_MS = 31 * 24 * 60 * 60 * 1000;
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 100;
const MAX_CORPORATES = 1_000;

/**
 * Reads the query of the transactions endpoint (the text after `?`) and reports all problems together, at most one for
 * each parameter. `readCursor` checks a cursor against the filters, which are `undefined` if they have problems.
 */
export function readParameters(
  rawQuery: string,
  readCursor: (text: string, filters: PageFilters | undefined) => CursorReading,
): ParameterReading {
  const problems = new Map<string, string>();
  const given = collect(rawQuery, problems);
  /** Reads a parameter; `undefined` if it is absent or has a problem, which is then added to `problems`. */
  const read = <T>(name: ParameterName, parse: (text: string) => T | Problem): T | undefined => {
    const text = given.get(name);
    if (text === undefined || problems.has(name)) return undefined;
    const value = parse(text);
    if (!(value instanceof Problem)) return value;
    problems.set(name, value.text);
    return undefined;
  };

  for (const name of ['from', 'to']) {
    if (!given.has(name) && !problems.has(name)) problems.set(name, 'is required');
  }
  const fromMs = read('from', readDateTime);
  const toMs = read('to', (text) => readEnd(text, fromMs));
  const references = {
    corporate_group_id: read('corporate_group_id', readInteger),
    corporate_id: read('corporate_id', readCorporateIds),
  };
  const statuses = read('status', readStatuses) ?? VISIBLE_STATUSES;
  const limit = read('limit', readLimit) ?? DEFAULT_LIMIT;
  const filters =
    fromMs === undefined || toMs === undefined || FILTERS.some((name) => problems.has(name))
      ? undefined
      : { fromMs, toMs, references, statuses };
  const after = read('cursor', (text) => placeOf(readCursor(text, filters)));
  // Not a plain assignment: a parameter may be called __proto__.
  if (problems.size > 0 || filters === undefined) return { ok: false, fields: Object.fromEntries(problems) };
  return { ok: true, query: { ...filters, after, limit } };
}

class Problem {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Returns the parameters by name. Unknown, repeated and empty ones are problems. */
function collect(rawQuery: string, problems: Map<string, string>): Map<string, string> {
  const given = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(rawQuery)) {
    if (!(PARAMETERS as readonly string[]).includes(name)) problems.set(name, 'unknown parameter');
    else if (given.has(name)) problems.set(name, 'must be given only once');
    else if (value === '') problems.set(name, 'must not be empty');
    given.set(name, value);
  }
  return given;
}

function readDateTime(text: string): number | Problem {
  // A "+" that the client has not encoded arrives as a space.
  const ms = parseDateTime(text.replace(' ', '+'));
  return (
    ms ??
    new Problem(
      'must be an ISO 8601 date-time with seconds and an offset that exists, such as 2026-09-01T00:00:00Z',
    )
  );
}

/** Reads the end of the range. A problem with the range as a whole is reported for its end. */
function readEnd(text: string, fromMs: number | undefined): number | Problem {
  const toMs = readDateTime(text);
  if (toMs instanceof Problem || fromMs === undefined) return toMs;
  if (toMs < fromMs) return new Problem('must not be before from');
  if (toMs - fromMs > MAX_RANGE_MS) return new Problem('must be at most 31 days after from');
  return toMs;
}

function readInteger(text: string): number | Problem {
  const value = /^-?[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  // Adding 0 turns -0 into 0.
  return Number.isSafeInteger(value) ? value + 0 : new Problem('must be an integer within 2^53-1');
}

function readCorporateIds(text: string): readonly number[] | Problem {
  const wrong = new Problem('must be an integer or a comma-separated list of integers within 2^53-1');
  if (!/^[0-9]+(,[0-9]+)*$/.test(text)) return wrong;
  const ids = [...new Set(text.split(',').map(Number))];
  if (!ids.every(Number.isSafeInteger)) return wrong;
  return ids.length > MAX_CORPORATES ? new Problem(`must be at most ${MAX_CORPORATES} integers`) : ids;
}

function readStatuses(text: string): readonly VisibleStatus[] | Problem {
  const wanted = text.split(',');
  if (!wanted.every((status) => (VISIBLE_STATUSES as readonly string[]).includes(status))) {
    return new Problem(`must be ${VISIBLE_STATUSES.join(' or ')}, or several separated by commas`);
  }
  return VISIBLE_STATUSES.filter((status) => wanted.includes(status));
}

function readLimit(text: string): number | Problem {
  if (!/^-?[0-9]+$/.test(text)) return new Problem('must be an integer');
  const limit = Number(text);
  if (limit < 1) return new Problem('must be at least 1');
  return limit > MAX_LIMIT ? new Problem(`must be at most ${MAX_LIMIT}`) : limit;
}

function placeOf(cursor: CursorReading): Place | Problem {
  if (cursor === 'malformed') return new Problem('is malformed: pass next_cursor as it was received');
  if (cursor === 'other filters') {
    return new Problem('was made with other filters: pass the filters and the range of the page before');
  }
  return cursor;
}
