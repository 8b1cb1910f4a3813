import type { EventStoreDBClient } from '@eventstore/db-client';

/** The driver's private way to the arguments of a call. */
interface Calls {
  callArguments(options: { readonly requiresLeader?: boolean | undefined }, call?: object): unknown;
}

/**
 * Has every call be refused by a node that is not the leader. While none is known the driver (6.2.1) takes any node, and
 * keeps it for as long as that answers: a follower, which may be behind what was recorded. Refused by it, the driver goes
 * on with the leader.
 */
export function onLeader(client: EventStoreDBClient): EventStoreDBClient {
  const calls = client as unknown as Calls;
  const { callArguments } = calls;
  calls.callArguments = (options, call) =>
    callArguments({ ...options, requiresLeader: options.requiresLeader ?? true }, call);
  return client;
}
