import { type AddressInfo, createServer, type Server } from 'node:net';
import { FuelError } from './errors.ts';
import { world } from './world.ts';

interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Where a server listens. With `reusePort` other servers of this user may listen on the port too, and the system gives
 * each its share of the connections. `fd` is a socket that another program opened, and keeps open when this one ends.
 */
export type ListenPlace = (ListenAddress & { readonly reusePort?: boolean }) | { readonly fd: number };

/** Resolves with the real address once the server accepts connections (port 0 picks a free one). Rejects with `REFUSED`. */
export async function listen(server: Server, place: ListenPlace): Promise<AddressInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refuse = (cause: Error): void => {
    const what =
      'fd' in place
        ? `socket ${place.fd}, which was passed to this process: it must be one of TCP that listens`
        : `${place.host}:${place.port}: name another address`;
    reject(new FuelError('REFUSED', `can't listen on ${what}`, { cause }));
  };
  server.once('error', refuse);
  world.listen(server, place, resolve);
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

/** The first of the sockets that a service manager passes to a process: sd_listen_fds(3). */
export const FIRST_PASSED_SOCKET = 3;

/** How many sockets a service manager opened for this process and passed to it; most often 0. */
export function passedSockets({ LISTEN_PID, LISTEN_FDS }: NodeJS.ProcessEnv = process.env): number {
  return LISTEN_PID === String(world.self().pid) ? Number(LISTEN_FDS) : 0; // of another process: they were not for this one
}

/** A host as in a URL: IPv6 in brackets. */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
