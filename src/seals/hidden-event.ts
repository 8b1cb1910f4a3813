import type { EventStore } from '../event-store/event-store.ts';
import type { Gaps } from '../event-store/operations.ts';
import { readToEnd } from '../event-store/reads.ts';
import { type Position, SETTINGS_STREAMS, streamHiddenBy, textOfRef } from '../event-store/recorded-event.ts';

/**
 * Returns the first event, as `stream@revision`, that its stream no longer shows although no erasure names it.
 * EventStoreDB's log shows such an event until it is scavenged, but readers of the stream don't get it. `deleted` are
 * the streams that the log marks as deleted.
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
  const all = { prefixes: [SETTINGS_STREAMS], after, unparsed: true, signal };
  for await (const { events } of readToEnd(store, all))
    for (const event of events) {
      const hidden = streamHiddenBy(event);
      if (hidden !== undefined) streams.add(hidden);
    }
  for (const stream of streams) {
    if (stream.startsWith('$') || gaps.isErased(stream)) continue;
    let revision = 0;
    while (gaps.has({ stream, revision })) revision += 1;
    const [first] = await store.readStream(stream, { limit: 1 });
    if (first === undefined || first.revision > revision) return textOfRef({ stream, revision });
  }
  return undefined;
}
