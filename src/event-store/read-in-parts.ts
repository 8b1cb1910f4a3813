import type { EventStore, RecordedEvent } from './event-store.ts';

/** Streams whose events are in memory at once. */
const STREAMS_A_READ = 128;

/** The events of many streams, in the order asked for, of which only some are in memory at a time. */
export async function* readInParts(
  store: Pick<EventStore, 'readStreams'>,
  streams: readonly string[],
): AsyncGenerator<readonly [stream: string, events: RecordedEvent[]], void> {
  for (let at = 0; at < streams.length; at += STREAMS_A_READ) {
    const some = streams.slice(at, at + STREAMS_A_READ);
    const histories = await store.readStreams(some);
    for (const [index, stream] of some.entries()) yield [stream, histories[index] ?? []];
  }
}
