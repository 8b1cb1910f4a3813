import type streams from '@eventstore/db-client/generated/streams_pb.js';
import { type LogRecord, UNLISTED } from './log-record.ts';

export type EventFilter = (record: LogRecord) => boolean;

/** The server's own streams that no read of `$all` shows. Their events take positions in the log. */
const HIDDEN = /^(\$epoch-information|\$persistentsubscription-\$all::.*-(checkpoint|parked))$/s;

/** True if a read of `$all` shows the record. */
export function isShown({ stream }: LogRecord): boolean {
  return stream !== UNLISTED && !HIDDEN.test(stream);
}

/** Makes the filter of a subscription to `$all`, which is by the names of streams. Without options all that it shows pass. */
export function eventFilter(options: streams.ReadReq.Options.FilterOptions | undefined): EventFilter {
  const names = options?.getStreamIdentifier();
  const pattern = new RegExp(names?.getRegex() ?? '');
  const prefixes = names?.getPrefixList() ?? [];
  return (record) => {
    if (!isShown(record) || !pattern.test(record.stream)) return false;
    return prefixes.length === 0 || prefixes.some((prefix) => record.stream.startsWith(prefix));
  };
}
