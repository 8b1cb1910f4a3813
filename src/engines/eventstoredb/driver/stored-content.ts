import persistentPb from '@eventstore/db-client/generated/persistent_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { InterceptingCall, type Interceptor, ListenerBuilder } from '@grpc/grpc-js';
import { tooLong } from '../../../event-store/event-bounds.ts';
import type { Unreadable } from '../../../event-store/recorded-event.ts';

type Message = streamsPb.ReadResp.ReadEvent.RecordedEvent | persistentPb.ReadResp.ReadEvent.RecordedEvent;

const JSON_CONTENT = 'application/json';
const NOTHING = new Uint8Array();

/** An event's data as it was sent, in place of the value that the driver would parse; with its metadata. */
export class StoredContent extends Uint8Array {
  isJson = false;
  metadata: Uint8Array = NOTHING;
  /** In place of what is too long: nothing of it was kept. */
  faults: { readonly data?: Unreadable | undefined; readonly metadata?: Unreadable | undefined } = {};
  receivedBytes = 0;
}

/**
 * Has a call hand out the content of events as `StoredContent`: the driver would parse it, and buffer the values. Of what
 * is too long nothing is kept beyond its arrival.
 */
export const keepStoredContent: Interceptor = (options, nextCall) =>
  new InterceptingCall(nextCall(options), {
    start(metadata, _, next) {
      const listener = new ListenerBuilder().withOnReceiveMessage((message, receive) => {
        for (const event of eventsIn(message)) keepContent(event);
        receive(message);
      });
      next(metadata, listener.build());
    },
  });

function eventsIn(message: unknown): readonly Message[] {
  if (!(message instanceof streamsPb.ReadResp || message instanceof persistentPb.ReadResp)) return [];
  const resolved = message.getEvent();
  return [resolved?.getEvent(), resolved?.getLink()].filter((event) => event !== undefined);
}

function keepContent(event: Message): void {
  const [data, metadata] = [event.getData_asU8(), event.getCustomMetadata_asU8()];
  const faults = { data: tooLong('data', data.length), metadata: tooLong('metadata', metadata.length) };
  const content = new StoredContent(faults.data === undefined ? data : NOTHING);
  const map = event.getMetadataMap();
  content.isJson = map.get('content-type') === JSON_CONTENT;
  content.metadata = new Uint8Array(faults.metadata === undefined ? metadata : NOTHING);
  content.faults = faults;
  content.receivedBytes = data.length + metadata.length;
  event.setData(content);
  event.setCustomMetadata(NOTHING);
  map.set('content-type', 'application/octet-stream'); // which the driver leaves as it is
}
