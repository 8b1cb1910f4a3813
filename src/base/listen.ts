import type { AddressInfo, Server } from 'node:net';
import { FuelError } from './errors.ts';
import { world } from './world.ts';

interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** The place at which a server listens. `fd` is a socket that another program has opened and keeps open. */
export type ListenPlace = ListenAddress | { readonly fd: number };

/** Resolves with the actual address once the server listens (port 0 picks a free port). Rejects with `REFUSED`. */
export async function listen(server: Server, place: ListenPlace): Promise<AddressInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refuse = (cause: Error): void => {
    const what =
      'fd' in place
        ? `socket ${place.fd}, which was passed to this process: it must be a listening TCP socket`
        : `${place.host}:${place.port}: use another address`;
    reject(new FuelError('REFUSED', `can't listen on ${what}`, { cause }));
  };
  server.once('error', refuse);
  world.listen(server, place, resolve);
  await promise;
  server.off('error', refuse);
  return server.address() as AddressInfo;
}

/** The file descriptor of the first socket that a service manager passes to a process: sd_listen_fds(3). */
export const FIRST_PASSED_SOCKET = 3;

/** Returns the number of sockets that a service manager has passed to this process, which is usually none. */
export function passedSockets({ LISTEN_PID, LISTEN_FDS }: NodeJS.ProcessEnv = process.env): number {
  return LISTEN_PID === String(world.self().pid) ? Number(LISTEN_FDS) : 0; // a child inherits its parent's variables
}

/** A host as it is written in a URL, with brackets around an IPv6 address. */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
