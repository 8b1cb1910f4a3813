import { idOfChange, projectTransaction, stateAfter } from '../../../projections/transactions.ts';
import { faultsOf, schemaOf } from '../../domain/events.ts';
import {
  isTransactionEventType,
  type TransactionEventType,
  transactionEvents,
  transactionStream,
} from '../../domain/transaction-events.ts';
import { MAX_NESTING, shortened } from '../../domain/values/bounds.ts';
import { RecordFault } from '../../domain/values/printed.ts';
import { JsonText } from '../../event-store/new-event.ts';
import { type LineText, type ParsedLine, parseJsonLine } from '../lines/lines.ts';

const LINE = {
  members: '"type" and "data"',
  maxLevels: 1 + MAX_NESTING, // the line is one level around its data
  levels: `the ${MAX_NESTING} levels that an event's data may have`,
};

/** A transaction event that fits its schema. */
export interface ImportedEvent {
  readonly type: TransactionEventType;
  readonly data: JsonText;
  readonly accountId: number;
}

/**
 * Reads one `{"type", "data"}` line. It accepts exactly what the view can show: the renderer decides, since it checks every
 * value and is ten times faster than the schema. The schema then names every fault of a refused line.
 */
export function parseLine(line: LineText): ParsedLine<ImportedEvent> {
  const refused = (reason: string) => ({ ok: false as const, reason: shortened(reason) });
  const parsed = parseJsonLine(line.text, LINE);
  if (!parsed.ok) return refused(parsed.reason);
  const { type, data } = parsed.members;
  if (typeof type !== 'string' || !isTransactionEventType(type)) {
    const known = Object.keys(transactionEvents).join(', ');
    return refused(`unknown type ${JSON.stringify(type) ?? '(none)'}: must be one of ${known}`);
  }
  try {
    const change = projectTransaction(type, data, 0);
    const { accountId } = stateAfter(change);
    // The parsed value is not kept, since it is only needed if the stream already has events.
    const json = new JsonText(bytesOf(type, data, line));
    const content = { type, data: json, accountId };
    return { ok: true, stream: transactionStream(idOfChange(change)), content };
  } catch (error) {
    if (!(error instanceof RecordFault)) throw error;
    const schema = schemaOf(type);
    const faults = schema === undefined ? [] : faultsOf(schema, data);
    return refused(faults.length > 0 ? faults.join('; ') : error.message);
  }
}

/**
 * The data as it is recorded. Most lines contain exactly these bytes, which then need not be made or copied. Lines with white
 * space, a repeated member or another spelling of a value do not.
 */
function bytesOf(type: string, data: unknown, { text, bytes }: LineText): Uint8Array {
  const json = JSON.stringify(data);
  const before = `{"type":"${type}","data":`;
  // Comparing texts of the same length is quicker than searching for one in the other.
  const isThere = text.startsWith(before) && text.slice(before.length, -1) === json;
  return isThere ? bytes.subarray(before.length, -1) : Buffer.from(json);
}
