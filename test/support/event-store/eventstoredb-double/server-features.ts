import features from '@eventstore/db-client/generated/serverfeatures_pb.js';

const PACKAGE = 'event_store.client';
const SERVICES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'persistent_subscriptions.persistentsubscriptions': {
    create: ['stream', 'all'],
    update: ['stream', 'all'],
    delete: ['stream', 'all'],
    read: ['stream', 'all'],
    getinfo: ['stream', 'all'],
    replayparked: ['stream', 'all'],
  },
  'streams.streams': {
    read: ['position', 'events'],
    tombstone: [],
    batchappend: ['deadline_duration'],
  },
  'gossip.gossip': { read: [] },
  'server_features.serverfeatures': { getsupportedmethods: [] },
};

/** Returns the features that the server reports, as far as the double has them. */
export function supportedMethods(version: string): features.SupportedMethods {
  const methods = Object.entries(SERVICES).flatMap(([service, byName]) =>
    Object.entries(byName).map(([name, list]) =>
      new features.SupportedMethod()
        .setServiceName(`${PACKAGE}.${service}`)
        .setMethodName(name)
        .setFeaturesList([...list]),
    ),
  );
  return new features.SupportedMethods().setEventStoreServerVersion(version).setMethodsList(methods);
}
