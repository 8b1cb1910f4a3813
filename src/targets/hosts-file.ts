import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

const HOSTS_FILE = '/etc/hosts';

/**
 * The addresses that this machine's hosts file gives a name (in lower case), none where it has none. It is
 * read in place: a small file, and the threads that asynchronous reads need may all wait for getaddrinfo.
 */
export function addressesInHostsFile(name: string, path: string = HOSTS_FILE): readonly string[] {
  return hostsText(path)
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/))
    .filter(([address = '', ...names]) => isIP(address) !== 0 && names.includes(name))
    .map(([address = '']) => address);
}

function hostsText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}
