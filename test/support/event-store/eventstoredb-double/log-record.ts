/** One event as the double keeps it, with its original bytes, which may not be JSON. */
export interface LogRecord {
  /** The commit and prepare position, which are equal for events that are written at once. */
  readonly position: number;
  readonly stream: string;
  readonly revision: bigint;
  readonly id: string;
  readonly type: string;
  readonly isJson: boolean;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  readonly createdMs: number;
}

export type ProposedRecord = Pick<LogRecord, 'id' | 'type' | 'isJson' | 'data' | 'metadata'>;

/** An event with the link that was resolved to it, or a link whose event is gone. */
export interface Resolved {
  readonly event: LogRecord | undefined;
  readonly link: LogRecord | undefined;
}

/** The revision of a tombstone: the largest that the protocol's signed number holds. */
export const TOMBSTONE_REVISION = 2n ** 63n - 1n;

/**
 * The stream in which the double keeps records that are in no stream at all, like those of KurrentDB's epochs: live
 * positions are reported on them, and neither `$all` nor a stream shows them.
 */
export const UNLISTED = '$unlisted';

/** An event that the server itself writes. */
export function systemRecord(
  type: string,
  data: string,
  { isJson = true, metadata = '' }: { readonly isJson?: boolean; readonly metadata?: string } = {},
): ProposedRecord {
  const id = crypto.randomUUID();
  return { id, type, isJson, data: Buffer.from(data), metadata: Buffer.from(metadata) };
}

/** Parses the data of a system event. */
export function jsonOf(record: LogRecord): unknown {
  return JSON.parse(Buffer.from(record.data).toString('utf8'));
}
