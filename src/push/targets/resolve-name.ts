import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { world } from '../../base/world.ts';
import { type NameResolver, network } from './network.ts';

const HOSTS_FILE = '/etc/hosts';
/** How often c-ares checks whether to repeat a query, which it does after 250 ms at the earliest. */
const QUERY_TIMEOUT_MS = 90;
const TRIES = 2;
/** After this time the addresses of one family are enough: some zones never answer for the other. */
const BOTH_WITHIN_MS = 400;
const LOOPBACK = ['127.0.0.1', '::1'];

/** Finds all addresses of a name. Rejects if there are none, or when the signal aborts. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

interface ResolveNameOptions {
  /** `/etc/hosts` unless given. */
  readonly hostsFile?: string | undefined;
  /** Addresses and ports of the DNS servers; those of this machine unless given. */
  readonly servers?: readonly string[] | undefined;
}

/**
 * Resolves names by the hosts file, then by DNS (A and AAAA). It does not use getaddrinfo, which has four threads and can't
 * be cancelled: a few zones that never answer would delay every receiver. Here each look-up has its own sockets, which are
 * closed with it.
 */
export function nameResolver({ hostsFile, servers }: ResolveNameOptions = {}): ResolveName {
  return async (name, signal) => {
    const listed = addressesInHostsFile(name, hostsFile);
    if (listed.length > 0) return listed;
    if (name === 'localhost' || name.endsWith('.localhost')) return LOOPBACK;
    const resolver = network.resolver({ timeout: QUERY_TIMEOUT_MS, tries: TRIES });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = (): void => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await queryBoth(resolver, name);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

/** Resolves names by this machine's hosts file and DNS servers. */
export const resolveName = nameResolver();

async function queryBoth(resolver: NameResolver, name: string): Promise<readonly string[]> {
  const queries = [resolver.resolve4(name), resolver.resolve6(name)] as const;
  let oneIsFound = false;
  void Promise.any(queries).then(
    () => {
      oneIsFound = true;
    },
    () => undefined, // reported below
  );
  const enough = world.setTimeout(() => {
    if (oneIsFound) resolver.cancel();
  }, BOTH_WITHIN_MS);
  const answers = await Promise.allSettled(queries);
  world.clearTimeout(enough);
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (found.length > 0) return found;
  const [first] = answers;
  throw first.status === 'rejected' ? first.reason : new Error(`${name} has no address`);
}

/**
 * The addresses of a name (in lower case) in this machine's hosts file. The file is read synchronously, because it is small,
 * and because the threads for asynchronous reads may all be waiting for getaddrinfo.
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
