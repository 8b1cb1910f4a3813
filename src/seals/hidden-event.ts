import type { EventStore } from '../event-store/event-store.ts';
import { readToEnd } from '../event-store/reads.ts';
import { type Position, storedText } from '../event-store/recorded-event.ts';
import { type Gaps, placeOf } from './seals.ts';

/** EventStoreDB's metadata of a stream, and what in it hides events: truncated, or deleted so that it can be written anew. */
const METADATA = '$$';
const HIDES = /"\$(?:tb|maxCount|maxAge)"/;

/**
 * The first event that its stream does not show any more, though no erasure names it, as `stream@revision`: EventStoreDB's log
 * shows it until it is scavenged, while nobody who reads the stream gets it. `deleted`: streams that the log says are.
 */
export async function firstHidden(
  store: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>,
  gaps: Gaps,
  {
    deleted,
    after,
    signal,
  }: { deleted: Iterable<string>; after: Position; signal?: AbortSignal | undefined },
): Promise<string | undefined> {
  const streams = new Set(deleted);
  const all = { prefixes: [METADATA], after, unparsed: true, signal };
  for await (const { events } of readToEnd(store, all))
    for (const { stream, data } of events)
      if (data instanceof Uint8Array && HIDES.test(storedText(data)))
        streams.add(stream.slice(METADATA.length));
  for (const stream of streams) {
    if (stream.startsWith('$') || gaps.isErased(stream)) continue;
    let revision = 0;
    while (gaps.has({ stream, revision })) revision += 1;
    const [first] = await store.readStream(stream, { limit: 1 });
    if (first === undefined || first.revision > revision) return placeOf({ stream, revision });
  }
  return undefined;
}
