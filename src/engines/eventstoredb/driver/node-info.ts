import serverFeatures from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import { internalsOf } from './client.ts';
import type { EventStoreDbConnection } from './connection.ts';

const TIMEOUT_MS = 3_000;
const FIRST_KURRENTDB = 25;

export interface NodeInfo {
  /** EventStoreDB is called KurrentDB since its version 25. */
  readonly name: 'EventStoreDB' | 'KurrentDB';
  readonly version: string;
}

/** Asks the node that the client is connected to. */
export function readNodeInfo(connection: EventStoreDbConnection): Promise<NodeInfo> {
  const ask = async (): Promise<NodeInfo> => {
    const driver = internalsOf(connection.client);
    return await driver.execute(serverFeatures.ServerFeaturesClient, 'describe', (client) => {
      const { promise, resolve, reject } = Promise.withResolvers<NodeInfo>();
      const [metadata, options] = driver.callArguments({ requiresLeader: false });
      client.getSupportedMethods(new sharedPb.Empty(), metadata, options, (error, answer) => {
        if (error !== null) return reject(error);
        const version = answer.getEventStoreServerVersion();
        const name = Number.parseInt(version, 10) >= FIRST_KURRENTDB ? 'KurrentDB' : 'EventStoreDB';
        resolve({ name, version });
      });
      return promise;
    });
  };
  return connection.use(ask, { timeoutMs: TIMEOUT_MS, retryForMs: 0 });
}
