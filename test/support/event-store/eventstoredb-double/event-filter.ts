import type persistent from '@eventstore/db-client/generated/persistent_pb.js';
import type streams from '@eventstore/db-client/generated/streams_pb.js';
import { type LogRecord, UNLISTED } from './log-record.ts';

export type EventFilter = (record: LogRecord) => boolean;

/** A filter in the configuration of the server's groups. */
export interface FilterSettings {
  readonly context: 'streamid' | 'eventtype';
  readonly type: 'prefix' | 'regex';
  /** The expression, or the prefixes separated by commas. */
  readonly data: string;
  readonly isAllStream: true;
}

type FilterMessage =
  | streams.ReadReq.Options.FilterOptions
  | persistent.CreateReq.AllOptions.FilterOptions
  | undefined;

export function filterSettings(options: FilterMessage): FilterSettings | undefined {
  if (options === undefined) return undefined;
  const context = options.hasStreamIdentifier() ? 'streamid' : 'eventtype';
  const expression = options.getStreamIdentifier() ?? options.getEventType();
  const regex = expression?.getRegex() ?? '';
  if (regex !== '') return { context, type: 'regex', data: regex, isAllStream: true };
  const data = expression?.getPrefixList().join(',') ?? '';
  return { context, type: 'prefix', data, isAllStream: true };
}

/** The server's own streams that no read of `$all` shows. Their events take positions in the log. */
const HIDDEN = /^(\$epoch-information|\$persistentsubscription-\$all::.*-(checkpoint|parked))$/s;

export function isHidden({ stream }: LogRecord): boolean {
  return stream === UNLISTED || HIDDEN.test(stream);
}

/** Makes the filter for events of `$all`. Without settings all that it shows pass. */
export function eventFilter(settings: FilterSettings | undefined): EventFilter {
  const passes = settings === undefined ? () => true : named(settings);
  return (record) => !isHidden(record) && passes(record);
}

function named({ context, type, data }: FilterSettings): EventFilter {
  const name = (record: LogRecord): string => (context === 'streamid' ? record.stream : record.type);
  if (type === 'prefix') {
    const prefixes = data.split(',');
    return (record) => prefixes.some((prefix) => name(record).startsWith(prefix));
  }
  const pattern = new RegExp(data);
  return (record) => pattern.test(name(record));
}
