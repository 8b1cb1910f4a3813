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

/** Listens on a free port and sends the socket to the process that started it, without accepting anything. */
const OPENER = `
  import { createServer } from 'node:net';
  const server = createServer();
  await new Promise((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  await new Promise((resolve) => process.send(server.address().port, server._handle, resolve));
  server.close();`;

const held: HeldSocket[] = [];
atEndOfFile(async () => {
  for (const socket of held.splice(0)) socket.close();
});

/**
 * Opens a listening socket as systemd does for a unit. It stays open whichever process accepts its connections.
 * Resolves with its port and file descriptor.
 */
export async function holdSocket(): Promise<{ port: number; socket: number }> {
  const file = join(temporaryFolder(), 'opener.mjs');
  writeFileSync(file, OPENER);
  const opener = fork(file);
  return new Promise((resolve) => {
    opener.on('message', (port, handle) => {
      const socket = handle as unknown as HeldSocket;
      held.push(socket);
      resolve({ port: Number(port), socket: socket.fd });
    });
  });
}
