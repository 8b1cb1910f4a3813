import { Resolver } from 'node:dns/promises';
import { connect, createSecureContext } from 'node:tls';

export type NameResolver = Pick<Resolver, 'resolve4' | 'resolve6' | 'cancel' | 'setServers'>;

/** The network as the sender uses it. The simulation replaces it, like `world`. */
export const network = {
  connect,
  createSecureContext,
  resolver: (options: ConstructorParameters<typeof Resolver>[0]): NameResolver => new Resolver(options),
};
