/** The driver pings every 10 s, and replaces a node that does not answer within this time by another one. */
const PING_TIMEOUT_MS = 3_000;

/** The options that the driver knows, in any case and with or without `-` and `_`. It prints a string with others. */
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

/**
 * Returns the connection string in the driver's form. Throws an error that says what is wrong with the options, which the
 * driver would ignore.
 */
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

/** Replaces the scheme of KurrentDB, which is newer than the driver. */
function asEsdb(url: string): string {
  return url.replace(/^kurrentdb(?=:|\+discover:)/, 'esdb');
}

/** Removes an option that has no effect without TLS. The driver would print the whole string, including the password. */
function withoutVerify(url: string): string {
  return url.replace(/([?&])tls[-_]?verify[-_]?cert=false(&|$)/i, (_, before, after) =>
    after === '' ? '' : before,
  );
}

/** Adds the time-out of pings, unless the operator has set one. */
function withPing(url: string): string {
  if (/[?&]keep[-_]?alive[-_]?timeout=/i.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}keepAliveTimeout=${PING_TIMEOUT_MS}`;
}
