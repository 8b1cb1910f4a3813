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

/** The connection string as the driver takes it. Throws what is wrong with its options, which the driver ignores. */
export function driverUrl(url: string): string {
  const fault = faultOfOptions(url);
  if (fault !== undefined) throw new Error(fault);
  return withPing(withoutVerify(asEsdb(url)));
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
