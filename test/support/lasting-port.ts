import { createServer } from 'node:net';

/** The ports are below those of outgoing connections, which could take one while its owner is dead. */
const PORTS = { first: 12_000, count: 18_000 };

/** Returns a port of 127.0.0.1 that a server can listen on again and again. */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
