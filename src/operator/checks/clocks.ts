import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Config } from '../../base/config/config.ts';
import type { Server, ServerKind } from '../../service/engines/engines.ts';
import { type Finding, right, wrong } from './check.ts';

/** A clock that is not this machine's. */
export interface OtherClock {
  readonly title: string;
  /** It is configured for nothing but this. */
  readonly isForThis?: boolean;
  /** How coarse it is: what it says may be earlier than its time by this. */
  readonly stepMs: number;
  /** What it says now, and where known what it is; `undefined` where it tells no time. Rejects where it does not answer. */
  readonly read: () => Promise<{ readonly name?: string; readonly clockMs: number } | undefined>;
}

/**
 * Receivers refuse a signature whose time is five minutes off. Leases, the time a webhook was set and presigned URLs are
 * judged by several clocks; with NTP these differ by less than 0.1 s.
 */
const MAX_SKEW_MS = 2_000;
const ANSWER_MS = 3_000;
/** Of what names a time to the second. */
const SECOND_MS = 1_000;

const NTP_BYTES = 48;
/** Version 4, from a client. */
const NTP_REQUEST = 0x23;
const NTP_SERVER = 4;
const MAX_STRATUM = 15;
const UNSYNCHRONISED = 3;
/** From 1900, where NTP begins, to 1970. */
const NTP_EPOCH_SECONDS = 2_208_988_800;
/** Its seconds begin again in 2036. */
const NTP_ERA_SECONDS = 2 ** 32;

/** How far other clocks are from this machine's. */
export async function checkClocks(clocks: readonly OtherClock[], now: () => number): Promise<Finding> {
  const skews = await Promise.all(clocks.map((clock) => skewOf(clock, now)));
  const silent = skews.find(({ ms }, at) => ms === undefined && clocks[at]?.isForThis === true);
  if (silent !== undefined)
    return wrong(
      `${silent.name} does not tell the time`,
      'correct FUEL_NTP_SERVER, and let UDP to its port out',
    );
  if (skews.every(({ ms }) => ms === undefined)) {
    const named = skews.map(({ name }) => `; ${name} tells no time`).join('');
    return right(`compared with nothing: FUEL_NTP_SERVER names a server that tells the time${named}`);
  }
  const named = skews.map(
    ({ name, ms }) => `${name} ${ms === undefined ? 'not known' : `${(ms / 1000).toFixed(1)} s`}`,
  );
  const detail = `other clocks less this machine's: ${named.join(', ')}`;
  if (!skews.some(({ ms = 0 }) => Math.abs(ms) > MAX_SKEW_MS)) return right(detail);
  return wrong(
    `clocks differ, and receivers refuse what is signed five minutes off: ${detail}`,
    'set the clocks by NTP on every machine: timedatectl set-ntp true',
  );
}

/** Nothing is known of one that does not answer: where the service needs it, another check says so. */
async function skewOf({ title, stepMs, read }: OtherClock, now: () => number) {
  const askedAtMs = now();
  const found = await read().catch(() => undefined);
  if (found === undefined) return { name: title, ms: undefined };
  const earliestMs = found.clockMs - now();
  const latestMs = found.clockMs + stepMs - askedAtMs;
  return { name: found.name ?? title, ms: earliestMs > 0 ? earliestMs : Math.min(0, latestMs) };
}

/** Those that the configuration names: an NTP server, the engines, and servers that say when they answered. */
export function configuredClocks(
  config: Pick<Config, 'FUEL_NTP_SERVER' | 'FUEL_SMTP_URL'>,
  engines: readonly (ServerKind & Server)[],
  photos: string | undefined,
): OtherClock[] {
  const { FUEL_NTP_SERVER: ntp, FUEL_SMTP_URL: smtp } = config;
  return [
    ...(ntp === undefined ? [] : [{ title: ntp.host, isForThis: true, stepMs: 0, read: () => readNtp(ntp) }]),
    ...engines.map(({ title, clockStepMs = 0, describe }) => ({
      title,
      stepMs: clockStepMs,
      read: describe,
    })),
    ...(photos === undefined
      ? []
      : [{ title: 'photo store', stepMs: SECOND_MS, read: () => readHttpDate(photos) }]),
    ...(smtp === undefined
      ? []
      : [{ title: 'mail server', stepMs: SECOND_MS, read: () => readGreeting(smtp) }]),
  ];
}

/** By SNTP (RFC 4330). Rejects for a server that is not synchronised itself, or asks to be left alone. */
async function readNtp({ host, port }: { readonly host: string; readonly port: number }) {
  const signal = AbortSignal.timeout(ANSWER_MS);
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  try {
    const request = Buffer.alloc(NTP_BYTES);
    const nonce = randomBytes(8); // in place of this machine's time, which the server returns
    request[0] = NTP_REQUEST;
    nonce.copy(request, 40);
    const answered = once(socket, 'message', { signal }) as Promise<[Buffer]>;
    socket.send(request, port, host, (error) => error && socket.emit('error', error));
    const [answer] = await answered;
    const [head = 0, stratum = 0] = answer;
    const isTime =
      (head & 7) === NTP_SERVER && head >> 6 !== UNSYNCHRONISED && stratum >= 1 && stratum <= MAX_STRATUM;
    if (answer.length < NTP_BYTES || !isTime || !answer.subarray(24, 32).equals(nonce))
      throw new Error(`${host} is not synchronised, or no time server`);
    const seconds = answer.readUInt32BE(40);
    const era = seconds < NTP_EPOCH_SECONDS ? NTP_ERA_SECONDS : 0;
    const fraction = answer.readUInt32BE(44) / 2 ** 32;
    return { clockMs: (seconds + era - NTP_EPOCH_SECONDS + fraction) * SECOND_MS };
  } finally {
    socket.close();
  }
}

/** `Date` of whatever it answers: no key is needed for that. */
async function readHttpDate(endpoint: string) {
  const { headers } = await fetch(endpoint, {
    method: 'HEAD',
    redirect: 'manual',
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  return timeIn(headers.get('date') ?? '');
}

/** Some mail servers greet with the time. */
async function readGreeting(url: string) {
  const { protocol, hostname, port } = new URL(url);
  const isTls = protocol === 'smtps:';
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (isTls ? 465 : 587) };
  const socket = isTls ? connectTls({ ...place, servername: place.host }) : connect(place);
  try {
    const [greeting] = await once(socket, 'data', { signal: AbortSignal.timeout(ANSWER_MS) });
    return timeIn(
      /\w{3}, \d{1,2} \w{3} \d{4} \d\d:\d\d:\d\d (?:[+-]\d{4}|GMT)/.exec(String(greeting))?.[0] ?? '',
    );
  } finally {
    socket.destroy();
  }
}

function timeIn(text: string): { readonly clockMs: number } | undefined {
  const clockMs = Date.parse(text);
  return Number.isNaN(clockMs) ? undefined : { clockMs };
}
