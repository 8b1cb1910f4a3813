import { idOfChange, projectTransaction, RecordFault } from '../../../projections/transactions.ts';
import { faultsOf, schemaOf } from '../../domain/events.ts';
import {
  isTransactionEventType,
  type TransactionEvent,
  transactionEvents,
  transactionStream,
} from '../../domain/transaction-events.ts';
import { MAX_NESTING, nestsDeeperThan, shortened } from '../../domain/values/bounds.ts';

export type ParsedLine =
  | { readonly ok: true; readonly stream: string; readonly event: TransactionEvent }
  | { readonly ok: false; readonly reason: string };

/**
 * Reads one `{"type", "data"}` line. It accepts exactly what the view can show: the renderer decides, since it checks
 * every value and is ten times faster than the schema. For a refused line the schema then names every fault.
 */
export function parseLine(text: string): ParsedLine {
  const refused = (reason: string): ParsedLine => ({ ok: false, reason: shortened(reason) });
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch (error) {
    return refused(`is not JSON: ${(error as Error).message}`);
  }
  if (typeof line !== 'object' || line === null || Array.isArray(line)) {
    return refused('is not an object with "type" and "data"');
  }
  // The line is one level around its data. Checked before anything walks the values by recursion.
  if (nestsDeeperThan(line, 1 + MAX_NESTING)) {
    return refused(`nests deeper than the ${MAX_NESTING} levels that an event's data may have`);
  }
  const { type, data } = line as { type?: unknown; data?: unknown };
  if (typeof type !== 'string' || !isTransactionEventType(type)) {
    const known = Object.keys(transactionEvents).join(', ');
    return refused(`unknown type ${JSON.stringify(type) ?? '(none)'}: must be one of ${known}`);
  }
  try {
    const change = projectTransaction(type, data, 0);
    return {
      ok: true,
      stream: transactionStream(idOfChange(change)),
      event: { type, data } as TransactionEvent,
    };
  } catch (error) {
    if (!(error instanceof RecordFault)) throw error;
    const schema = schemaOf(type);
    const faults = schema === undefined ? [] : faultsOf(schema, data);
    return refused(faults.length > 0 ? faults.join('; ') : error.message);
  }
}
