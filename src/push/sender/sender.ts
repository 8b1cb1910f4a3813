import { LRUCache } from 'lru-cache';
import { type Clock, steadyClock } from '../../base/clock.ts';
import {
  type CertificateFiles,
  certificateEnd,
  readCertificate,
  watchCertificate,
} from '../../base/config/certificate-files.ts';
import type { Config } from '../../base/config/config.ts';
import type { ProxyAddress } from '../../base/config/values.ts';
import type { Log } from '../../base/log.ts';
import type { AttemptOutcome } from '../queue/delivery.ts';
import { type ResolveName, resolveName } from '../targets/resolve-name.ts';
import { forbiddenAmong, type NameLookup, readTarget } from '../targets/target.ts';
import { errorDetail, StartGate } from './connect.ts';
import { Connections } from './connections.ts';
import { EgressProxy, ProxyError } from './egress-proxy.ts';
import { createNameLookup } from './name-lookup.ts';
import {
  type ConnectionParts,
  failure,
  type SendRequest,
  type SendResult,
  type Sent,
  TimedSend,
} from './timed-send.ts';
import { readPem, trustedAuthorities } from './trusted-authorities.ts';

/** The settings of the certificate for receivers begin with this. */
export const CLIENT_CERTIFICATE = 'FUEL_WEBHOOK_CLIENT';
const MAX_SESSIONS = 10_000;
/** Certificates are verified at least this often: resuming a session does not verify them. */
const SESSION_KEPT_MS = 300_000;

/** Makes one attempt. Never rejects: whatever goes wrong is an outcome. */
export interface Sender {
  send(request: SendRequest): Promise<SendResult>;
  /** The number of open connections to an origin, idle or in use. */
  openConnections(origin: string): number;
  /** How long nothing may be sent to an origin because the operator's proxy has failed. */
  proxyWaitMs(origin: string): number;
  /** The operator's proxy as `host:port`, if there is one. */
  readonly proxy?: string | undefined;
  close(): Promise<void>;
}

export interface SenderOptions {
  /** For staging only: loopback, private addresses and any port may be called. */
  readonly allowPrivate: boolean;
  /** Certificate authorities (PEM) that are trusted in addition to the usual ones. */
  readonly extraCa?: string | undefined;
  /** The certificate for receivers that ask for one, and who is told when it ends, in milliseconds since the epoch. */
  readonly certificate?: CertificateFiles | undefined;
  readonly onCertificate?: ((endsAtMs: number) => void) | undefined;
  /** The operator's proxy. Receivers are connected to directly unless given. */
  readonly proxy?: ProxyAddress | undefined;
  readonly steady?: Clock | undefined;
  /** Resolves names; by the hosts file and DNS unless given. */
  readonly resolve?: ResolveName | undefined;
  /** Receives faults of the program. Their attempts fail as `fault`. */
  readonly log: Log;
}

interface Parts extends ConnectionParts {
  readonly allowPrivate: boolean;
  readonly names: NameLookup;
  readonly gate: StartGate;
}

/**
 * Sends webhooks over TLS, and keeps connections while they are used. Each attempt judges every address of its host, and
 * connects only to an address that it has judged. Redirects and cookies are ignored. `close` waits for attempts
 * under way. Throws `CONFIG_INVALID` if `extraCa` or the certificate can't be read.
 */
export function createSender(options: SenderOptions): Sender {
  const { allowPrivate, extraCa, steady = steadyClock, resolve = resolveName, log } = options;
  const names = createNameLookup({ resolve, steady });
  const { proxy, certificate: files, onCertificate } = options;
  const pem = files && readCertificate(files, CLIENT_CERTIFICATE);
  if (pem !== undefined) onCertificate?.(certificateEnd(pem));
  const parts: Parts = {
    allowPrivate,
    names,
    proxy: proxy && new EgressProxy({ ...proxy, names, steady, log }),
    connections: new Connections(),
    secureContext: trustedAuthorities(extraCa, pem),
    gate: new StartGate(),
    sessions: new LRUCache({ max: MAX_SESSIONS, ttl: SESSION_KEPT_MS, perf: steady }),
  };
  const watch =
    files &&
    watchCertificate({ files, prefix: CLIENT_CERTIFICATE, log }, (renewed) => {
      parts.secureContext = trustedAuthorities(extraCa, renewed);
      parts.sessions.clear(); // a resumed session would show the former certificate
      onCertificate?.(certificateEnd(renewed));
    });
  /** A receiver must not be able to end this process, even if it finds a fault in the sender. */
  const unforeseen = (error: unknown): Sent => {
    log.error({ err: error }, 'a webhook could not be sent, by a fault of the program: the attempt failed');
    return notSent(failure('fault', error instanceof Error ? errorDetail(error) : String(error)));
  };
  const underWay = new Set<Promise<Sent>>();
  let closed = false;
  return {
    async send(request) {
      const startedAt = steadyClock.now();
      const attempt = closed ? Promise.resolve(CLOSED) : send(parts, request).catch(unforeseen);
      underWay.add(attempt);
      const sent = await attempt;
      underWay.delete(attempt);
      const durationMs = Math.round(steadyClock.now() - startedAt);
      return { ...sent, durationMs, lateMs: Math.round(sent.lateMs) };
    },
    openConnections: (origin) => parts.connections.open(origin),
    proxyWaitMs: (origin) => parts.proxy?.waitMs(origin) ?? 0,
    proxy: parts.proxy?.name,
    async close() {
      closed = true;
      watch?.stop();
      parts.connections.close();
      await Promise.all(underWay);
    },
  };
}

type SenderConfig = Pick<
  Config,
  | 'FUEL_WEBHOOK_ALLOW_PRIVATE'
  | 'FUEL_WEBHOOK_CA'
  | 'FUEL_WEBHOOK_PROXY'
  | 'FUEL_WEBHOOK_CLIENT_CERT'
  | 'FUEL_WEBHOOK_CLIENT_KEY'
>;

/** Creates the sender that the configuration describes. Throws `CONFIG_INVALID` if a file that it names can't be used. */
export function configuredSender(
  config: SenderConfig,
  log: Log,
  onCertificate?: (endsAtMs: number) => void,
): Sender {
  const ca = config.FUEL_WEBHOOK_CA;
  return createSender({
    allowPrivate: config.FUEL_WEBHOOK_ALLOW_PRIVATE,
    extraCa: ca === undefined ? undefined : readPem(ca),
    proxy: config.FUEL_WEBHOOK_PROXY,
    certificate: clientCertificateFiles(config),
    onCertificate,
    log,
  });
}

/** Returns the paths of the certificate for receivers; `undefined` if none is configured. */
export function clientCertificateFiles({
  FUEL_WEBHOOK_CLIENT_CERT: cert,
  FUEL_WEBHOOK_CLIENT_KEY: key,
}: Pick<Config, 'FUEL_WEBHOOK_CLIENT_CERT' | 'FUEL_WEBHOOK_CLIENT_KEY'>): CertificateFiles | undefined {
  return cert === undefined || key === undefined ? undefined : { cert, key };
}

async function send(parts: Parts, request: SendRequest): Promise<Sent> {
  const read = readTarget(request.url, parts.allowPrivate);
  if (!read.ok) return notSent(failure('forbidden', `the webhook URL ${read.reason}`));
  const { target } = read;
  const found = await parts.names.find(target.host);
  if (!found.ok) return notSent(failure('dns', found.detail));
  const { addresses } = found;
  const forbidden = parts.allowPrivate ? undefined : forbiddenAmong(addresses);
  if (forbidden !== undefined)
    return notSent(failure('forbidden', `${target.host} has the address ${forbidden}`));
  const at = { target, addresses, request };
  try {
    if (parts.connections.hasIdle(target.origin)) return await new TimedSend(parts, at).run();
    await parts.gate.pass();
    return await new TimedSend(parts, at, await parts.proxy?.dial()).run();
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error;
    parts.proxy?.failed(error, target.origin);
    return { ...notSent(failure('proxy', error.message)), isWithheld: true };
  }
}

function notSent(outcome: AttemptOutcome): Sent {
  const times = { address: null, lateMs: 0, connectMs: null, roundTripMs: null, answerMs: null };
  return { outcome, ...times, isWithheld: false, isSentAgain: false };
}

const CLOSED = notSent(failure('connect', 'the sender is closed'));
