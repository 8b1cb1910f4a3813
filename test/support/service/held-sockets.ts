import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { atEndOfFile } from '../end-of-file.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** A listening socket of this process that accepts nothing itself. */
interface HeldSocket {
  readonly fd: number;
  close(): void;
}

/** Listens `count` times on one free port, and sends each socket to who started it, without accepting anything. */
const OPENER = `
  import { createServer } from 'node:net';
  let port = 0;
  for (let left = Number(process.argv[2]); left > 0; left--) {
    const server = createServer();
    await new Promise((resolve) => server.listen({ host: '127.0.0.1', port, reusePort: true }, resolve));
    ({ port } = server.address());
    await new Promise((resolve) => process.send(port, server._handle, resolve));
    server.close();
  }`;

const held: HeldSocket[] = [];
atEndOfFile(async () => {
  for (const socket of held.splice(0)) socket.close();
});

/**
 * Opens listening sockets as systemd does for a unit: they stay open whatever process accepts their connections. Resolves
 * with their port and file descriptors.
 */
export async function holdSockets(count: number): Promise<{ port: number; sockets: number[] }> {
  const file = join(temporaryFolder(), 'opener.mjs');
  writeFileSync(file, OPENER);
  const opener = fork(file, [String(count)]);
  const sockets: number[] = [];
  let port = 0;
  opener.on('message', (sent, handle) => {
    const socket = handle as unknown as HeldSocket;
    held.push(socket);
    sockets.push(socket.fd);
    port = Number(sent);
  });
  await new Promise((resolve) => opener.once('close', resolve));
  return { port, sockets };
}
