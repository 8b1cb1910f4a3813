import type { AddressInfo, Server } from 'node:net';
import { FuelError } from './errors.ts';

/** Resolves with the real address once the server accepts connections (port 0 picks a free one). Rejects with `REFUSED`. */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<AddressInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refuse = (cause: Error): void => {
    reject(new FuelError('REFUSED', `can't listen on ${host}:${port}: name another address`, { cause }));
  };
  server.once('error', refuse);
  server.listen({ host, port }, resolve);
  await promise;
  server.off('error', refuse);
  return server.address() as AddressInfo;
}

/** A host as in a URL: IPv6 in brackets. */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
