import type { RequestRow } from '../../pull/request-journal.ts';

/** A request as every engine stores it; what it asked for is JSON. */
export interface StoredRequest {
  readonly prefix: string;
  readonly at: number;
  readonly address: string | null;
  readonly status: number;
  readonly code: string | null;
  readonly rows: number | null;
  readonly query: string | null;
}

export function storedRequest({ atMs: at, query, ...row }: RequestRow): StoredRequest {
  return { ...row, at, query: query === null ? null : JSON.stringify(query) };
}

export function requestOf({ at, query, ...row }: StoredRequest): RequestRow {
  const { prefix, address, status, rows } = row;
  const code = row.code as RequestRow['code'];
  return { prefix, atMs: at, address, status, code, rows, query: query === null ? null : JSON.parse(query) };
}
