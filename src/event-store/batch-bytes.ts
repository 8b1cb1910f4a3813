import type { RecordedEvent } from './recorded-event.ts';

/**
 * A batch is full once its events reach this many bytes, as `jsonBytes` counts them. It has at least one event,
 * whatever its size. Several hundred ordinary events are smaller than this.
 */
export const MAX_BATCH_BYTES = 2 * 1024 * 1024;

const VALUE_BYTES = 8;
const CONTAINER_BYTES = 32;

/** Estimates the memory of an event. */
export function eventBytes({ data, metadata }: Pick<RecordedEvent, 'data' | 'metadata'>): number {
  return jsonBytes(data) + jsonBytes(metadata);
}

/**
 * Estimates the memory of a JSON value, which may be ten times the size of its text. It uses no recursion, since a
 * stored value may be nested to any depth.
 */
export function jsonBytes(value: unknown): number {
  let bytes = 0;
  const open: object[] = [];
  const count = (member: unknown): void => {
    bytes += VALUE_BYTES;
    if (typeof member === 'string' || member instanceof Uint8Array) bytes += member.length;
    else if (typeof member === 'object' && member !== null) open.push(member);
  };
  count(value);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    bytes += CONTAINER_BYTES;
    if (Array.isArray(next)) for (const member of next) count(member);
    else {
      for (const name in next) {
        bytes += name.length;
        count((next as Readonly<Record<string, unknown>>)[name]);
      }
    }
  }
  return bytes;
}

/** Cuts items into batches of at most `maxItems` items and about `MAX_BATCH_BYTES`. */
export function* batchesOf<T>(
  items: Iterable<T>,
  { maxItems, bytesOf }: { readonly maxItems: number; readonly bytesOf: (item: T) => number },
): Generator<T[], void> {
  let batch: T[] = [];
  let bytes = 0;
  for (const item of items) {
    batch.push(item);
    bytes += bytesOf(item);
    if (batch.length < maxItems && bytes < MAX_BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}
