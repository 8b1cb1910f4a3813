import { readdirSync, readlinkSync } from 'node:fs';

/** Returns how many sockets a process has open. A client that reads nothing does not notice that its own was closed. */
export function openSockets(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((fd) => isSocket(`${folder}/${fd}`)).length;
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false; // it was closed just now
    throw error;
  }
}
