import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const LISTENS = '0A';

/** Returns the process that listens on a TCP port; `undefined` if it is another user's or on another machine. */
export function listenerPid(port: number): number | undefined {
  const inode = inodeOf(port);
  if (inode === undefined) return undefined;
  const isProcess = (name: string): boolean => /^\d+$/.test(name);
  return readdirSync('/proc')
    .filter(isProcess)
    .map(Number)
    .find((pid) => openFiles(pid).includes(`socket:[${inode}]`));
}

function inodeOf(port: number): string | undefined {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of readFileSync(table, 'utf8').split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
      if (state === LISTENS && local.endsWith(`:${wanted}`)) return inode;
    }
  }
  return undefined;
}

function openFiles(pid: number): string[] {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).map((name) => readlinkSync(`${folder}/${name}`));
  } catch {
    return []; // it has ended or belongs to another user
  }
}
