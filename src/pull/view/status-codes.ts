import { VISIBLE_STATUSES, type VisibleStatus } from '../../../projections/transactions.ts';

/** As every view stores them: a code never changes its meaning. */
const STATUS_CODES: Readonly<Record<VisibleStatus, number>> = { CONFIRMED: 1, EXTERNAL: 2 };

export function statusCode(status: VisibleStatus): number {
  return STATUS_CODES[status];
}

/** Throws for a code that this version does not know, as of a later one. */
export function statusOf(code: unknown, id: number): VisibleStatus {
  const status = VISIBLE_STATUSES.find((name) => STATUS_CODES[name] === code);
  if (status === undefined) throw new Error(`the row of transaction ${id} has an unknown status: ${code}`);
  return status;
}
