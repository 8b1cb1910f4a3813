import persistentPb from '@eventstore/db-client/generated/persistent_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { InterceptingCall, type Interceptor, ListenerBuilder } from '@grpc/grpc-js';
import { tooLong, type Unreadable } from '../../../event-store/recorded-event.ts';

type Message = streamsPb.ReadResp.ReadEvent.RecordedEvent | persistentPb.ReadResp.ReadEvent.RecordedEvent;

const JSON_CONTENT = 'application/json';
const NOTHING = new Uint8Array();

/** An event's data as it was sent, with its metadata. It replaces the value that the driver would parse. */
export class StoredContent extends Uint8Array {
  isJson = false;
  metadata: Uint8Array = NOTHING;
  /** The replacements for data and metadata that are too long. Nothing of these is kept. */
  faults: { readonly data?: Unreadable | undefined; readonly metadata?: Unreadable | undefined } = {};
  receivedBytes = 0;
}

/**
 * Makes a call hand out the content of events as `StoredContent`, since the driver would parse it and buffer the values.
 * Content that is too long is dropped when it arrives.
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
  map.set('content-type', 'application/octet-stream'); // the driver does not parse this type
}
