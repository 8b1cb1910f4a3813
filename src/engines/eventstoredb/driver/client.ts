import { EventStoreDBClient } from '@eventstore/db-client';
import type { CallOptions, ChannelOptions, Client, Metadata } from '@grpc/grpc-js';
import { refusedConnectionString } from '../../../base/errors.ts';
import { driverUrl } from './connection-string.ts';
import { keepStoredContent } from './stored-content.ts';

/**
 * How many bytes a node may send before this process acknowledges them. HTTP/2 starts with 64 KiB for all reads of a
 * connection together, which is 6.5 MB a second at a round trip of 10 ms.
 */
const FLOW_CONTROL_WINDOW = 1024 * 1024;

/** Protected methods of the driver that are used here. Each call runs on the current connection, which `dispose` ends. */
export interface DriverInternals {
  callArguments(
    options: { readonly requiresLeader?: boolean },
    call?: CallOptions,
  ): [metadata: Metadata, options: CallOptions];
  execute<C extends Client, T>(
    service: ServiceClient<C>,
    name: string,
    work: (client: C) => Promise<T>,
  ): Promise<T>;
  GRPCStreamCreator<C extends Client, T>(
    service: ServiceClient<C>,
    name: string,
    open: (client: C) => T,
  ): () => Promise<T>;
  supports(): Promise<boolean>;
  /** The channel connects with its first call. */
  createChannel(): Promise<{ readonly internalChannel: { readonly options: ChannelOptions } }>;
}

type ServiceClient<C extends Client> = new (...args: ConstructorParameters<typeof Client>) => C;

export function internalsOf(client: EventStoreDBClient): DriverInternals {
  return client as unknown as DriverInternals;
}

/**
 * Makes a client that works around some faults of the driver (6.2.1). It connects with its first use. Throws
 * `CONFIG_INVALID` for a connection string that the driver does not accept.
 *
 * - While no leader is known, the driver chooses any node and keeps it while it answers. That may be a follower, which
 *   lacks the newest events. So every call asks to be refused there; then the driver continues with the leader (0077).
 * - It parses data and metadata of any length as they arrive. Here they are kept as bytes (`StoredContent`).
 * - Before it uses a group it asks each node, without a deadline, what the node supports. If that fails during an
 *   election, it rejects every later use of groups with that failure until another call breaks. All servers from 23.10
 *   on support what is used here.
 * - It has no setting for the options of its channels.
 */
export function newClient(url: string): EventStoreDBClient {
  let client: EventStoreDBClient;
  try {
    client = EventStoreDBClient.connectionString(driverUrl(url));
  } catch (error) {
    throw refusedConnectionString({ setting: 'EVENTSTORE_URL', url }, error);
  }
  const internals = internalsOf(client);
  const { callArguments, createChannel } = internals;
  internals.callArguments = ({ requiresLeader = true, ...options }, call) =>
    callArguments({ ...options, requiresLeader }, { ...call, interceptors: [keepStoredContent] });
  internals.supports = async () => true;
  internals.createChannel = async () => {
    const channel = await createChannel();
    channel.internalChannel.options['grpc-node.flow_control_window'] = FLOW_CONTROL_WINDOW;
    return channel;
  };
  return client;
}
