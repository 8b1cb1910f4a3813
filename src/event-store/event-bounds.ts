import { FuelError } from '../base/errors.ts';
import { Unreadable } from './recorded-event.ts';

/**
 * How many bytes of an event are parsed at most: a value may take twenty times the memory of its text. By default
 * EventStoreDB accepts 1 MiB in one append. It does not limit metadata, which may have 16 MiB; this service writes
 * about 300 bytes.
 */
export const MAX_BYTES = { data: 1024 * 1024, metadata: 64 * 1024 } as const;

/** Returns the replacement for data or metadata that is too long to be parsed; `undefined` if it is not. */
export function tooLong(what: keyof typeof MAX_BYTES, bytes: number): Unreadable | undefined {
  if (bytes <= MAX_BYTES[what]) return undefined;
  return new Unreadable(`${what} has ${bytes} bytes, more than ${MAX_BYTES[what]}`);
}

/**
 * Throws `ITEM_REFUSED` for an event that could not be read again, and for one without a type, which makes drivers
 * fail.
 */
export function assertStorable(event: {
  readonly type: string;
  readonly dataBytes: number;
  readonly metadataBytes: number;
}): void {
  const { type, dataBytes, metadataBytes } = event;
  const fault = tooLong('data', dataBytes) ?? tooLong('metadata', metadataBytes);
  const reason = type === '' ? 'it has no type' : fault?.reason;
  if (reason !== undefined)
    throw new FuelError('ITEM_REFUSED', `the event store does not take an event: ${reason}`);
}
