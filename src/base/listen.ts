import { type AddressInfo, createServer, type Server } from 'node:net';
import { FuelError } from './errors.ts';

interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Resolves with the real address once the server accepts connections (port 0 picks a free one). Rejects with `REFUSED`.
 * With `reusePort` other servers of this user may listen on the port too, and the system gives each its share of the
 * connections.
 */
export async function listen(
  server: Server,
  { host, port, reusePort = false }: ListenAddress & { readonly reusePort?: boolean },
): Promise<AddressInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refuse = (cause: Error): void => {
    reject(new FuelError('REFUSED', `can't listen on ${host}:${port}: name another address`, { cause }));
  };
  server.once('error', refuse);
  server.listen({ host, port, reusePort }, resolve);
  await promise;
  server.off('error', refuse);
  return server.address() as AddressInfo;
}

/**
 * Finds out whether a port is free, which a server with `reusePort` does not notice where the other one has it too.
 * Resolves with the real address. Rejects with `REFUSED`.
 */
export async function claimPort(address: ListenAddress): Promise<ListenAddress> {
  const server = createServer();
  const { port } = await listen(server, address);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return { host: address.host, port };
}

/** A host as in a URL: IPv6 in brackets. */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
