import type { PageFilter } from './database.ts';

const MAX_RANGE_MS = 31 * 24 * 60 * 60 * 1000;
const STATUSES = ['CONFIRMED', 'EXTERNAL'];

export interface Cursor {
  createdAt: number;
  id: number;
}

export type ParsedQuery =
  | { ok: true; filter: Omit<PageFilter, 'accountId'> }
  | { ok: false; fields: Record<string, string> };

export function parseQuery(query: URLSearchParams): ParsedQuery {
  const fields: Record<string, string> = {};
  const from = parseDate('from', query, fields);
  const to = parseDate('to', query, fields);
  if (to < from) fields.to = 'must not be before from';
  else if (to.getTime() - from.getTime() > MAX_RANGE_MS) fields.to = 'must be at most 31 days after from';

  const limit = Number(query.get('limit') ?? 50);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) fields.limit = 'must be an integer from 1 to 100';

  const statuses = query.get('status')?.split(',');
  if (statuses?.some((status) => !STATUSES.includes(status))) fields.status = 'must be CONFIRMED or EXTERNAL';

  const corporates = query.get('corporate_id');
  if (corporates !== null && !/^\d+(,\d+)*$/.test(corporates)) fields.corporate_id = 'must be integers';

  const group = query.get('corporate_group_id');
  if (group !== null && !/^\d+$/.test(group)) fields.corporate_group_id = 'must be an integer';

  const cursor = query.get('cursor');
  const after = cursor === null ? undefined : decodeCursor(cursor);
  if (cursor !== null && after === undefined) fields.cursor = 'is malformed';

  if (Object.keys(fields).length > 0) return { ok: false, fields };
  return {
    ok: true,
    filter: {
      from,
      to,
      corporateGroupId: group === null ? undefined : Number(group),
      corporateIds: corporates?.split(',').map(Number),
      statuses,
      after,
      limit,
    },
  };
}

export function encodeCursor(cursor: Cursor): string {
  return Buffer.from(JSON.stringify(cursor)).toString('base64');
}

function decodeCursor(text: string): Cursor | undefined {
  try {
    const { createdAt, id } = JSON.parse(Buffer.from(text, 'base64').toString()) as Partial<Cursor>;
    return typeof createdAt === 'number' && typeof id === 'number' ? { createdAt, id } : undefined;
  } catch {
    return undefined; // it is not JSON, so the caller reports the cursor as malformed
  }
}

function parseDate(name: string, query: URLSearchParams, fields: Record<string, string>): Date {
  const date = new Date(query.get(name) ?? '');
  if (Number.isNaN(date.getTime())) fields[name] = 'must be an ISO 8601 date-time';
  return date;
}
