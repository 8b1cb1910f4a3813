import { EventStoreDBClient } from '@eventstore/db-client';
import { refusedConnectionString } from '../../../base/errors.ts';
import { onLeader } from './on-leader.ts';
import { keepStoredContent } from './stored-content.ts';

/** The driver pings every 10 s: a node that does not answer within this time is replaced by another one. */
const PING_TIMEOUT_MS = 3_000;

/** The options that the driver knows, whatever their capitals, `-` and `_`. Of others it only prints the string. */
const OPTIONS = [
  'connectionName',
  'defaultDeadline',
  'discoveryInterval',
  'dnsDiscover',
  'gossipTimeout',
  'keepAliveInterval',
  'keepAliveTimeout',
  'maxDiscoverAttempts',
  'nodePreference',
  'throwOnAppendFailure',
  'tls',
  'tlsCAFile',
  'tlsVerifyCert',
  'userCertFile',
  'userKeyFile',
];
const KNOWN = new Set(OPTIONS.map(plain));

/** A client, which connects with its first use. Throws `CONFIG_INVALID` for a connection string that it does not take. */
export function newClient(url: string): EventStoreDBClient {
  const fault = faultOfOptions(url);
  if (fault !== undefined) throw refused(url, fault);
  try {
    const client = EventStoreDBClient.connectionString(withPing(withoutVerify(asEsdb(url))));
    return withoutQuestions(keepStoredContent(onLeader(client)));
  } catch (error) {
    throw refused(url, error);
  }
}

/**
 * Before it uses a group, the driver (6.2.1) asks each node what it supports: without a deadline, and where that fails
 * during an election, it rejects every later use of groups with that failure until another call breaks. All servers
 * from 23.10 on support what is used here.
 */
function withoutQuestions(client: EventStoreDBClient): EventStoreDBClient {
  return Object.assign(client, { supports: async () => true });
}

function refused(url: string, reason: unknown): Error {
  return refusedConnectionString({ setting: 'EVENTSTORE_URL', url }, reason);
}

function faultOfOptions(url: string): string | undefined {
  const options = optionsOf(url);
  const unknown = options.find(([name]) => !KNOWN.has(plain(name)));
  if (unknown !== undefined) return `option ${unknown[0]} is not supported: there are ${OPTIONS.join(', ')}`;
  const isSet = (name: string): boolean =>
    options.some((option) => plain(option[0]) === plain(name) && option[1] === 'false');
  if (isSet('tlsVerifyCert') && !isSet('tls')) {
    return 'tlsVerifyCert=false has no effect in this driver: name the authority with tlsCAFile';
  }
  return undefined;
}

function optionsOf(url: string): [name: string, value: string][] {
  const [, query = ''] = /\?(.*)$/s.exec(url) ?? [];
  return [...new URLSearchParams(query)];
}

function plain(name: string): string {
  return name.trim().toLowerCase().replace(/[_-]/g, '');
}

/** The driver is older than the name KurrentDB. */
function asEsdb(url: string): string {
  return url.replace(/^kurrentdb(?=:|\+discover:)/, 'esdb');
}

/** Without TLS there is nothing to verify, and the driver would print the string, password included. */
function withoutVerify(url: string): string {
  return url.replace(/([?&])tls[-_]?verify[-_]?cert=false(&|$)/i, (_, before, after) =>
    after === '' ? '' : before,
  );
}

/** A time-out that the operator has set in the connection string stays. */
function withPing(url: string): string {
  if (/[?&]keep[-_]?alive[-_]?timeout=/i.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}keepAliveTimeout=${PING_TIMEOUT_MS}`;
}
