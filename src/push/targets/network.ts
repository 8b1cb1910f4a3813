import { Resolver } from 'node:dns/promises';
import { connect, createSecureContext } from 'node:tls';

export type NameResolver = Pick<Resolver, 'resolve4' | 'resolve6' | 'cancel' | 'setServers'>;

/** How names are resolved and receivers reached; the simulation replaces it, as it does `world`. */
export const network = {
  connect,
  createSecureContext,
  resolver: (options: ConstructorParameters<typeof Resolver>[0]): NameResolver => new Resolver(options),
};
