import { type FuelError, isUnavailable } from '../../base/errors.ts';
import type { EngineDescription, RemoteEngine } from '../../service/engines/engine-health.ts';
import { type Finding, right, wrong } from './check.ts';

/** Leases, the time a webhook was set and presigned URLs are judged by several clocks; with NTP these differ by less than 0.1 s. */
const MAX_SKEW_MS = 2_000;
/** EventStoreDB and KurrentDB tell their time in whole seconds, cut off, and look at it once a second. */
const CUT_OFF_MS = 2_000;

const ENGINES = {
  eventstoredb: { name: 'EventStoreDB or KurrentDB', setting: 'EVENTSTORE_URL', oldest: [23, 10] },
  mongodb: { name: 'MongoDB', setting: 'MONGODB_URL', oldest: [6, 0] },
} as const;

type Describe = Pick<RemoteEngine, 'name' | 'check' | 'describe'>;

/** The embedded engine: it is part of Node. */
export function embeddedEngine(what: string): Finding {
  const { node, sqlite } = process.versions;
  return right(`${what}: embedded, SQLite ${sqlite} of Node ${node}`);
}

/** Whether the engine takes work, and its version is one that the service knows. */
export async function checkEngine({ name: id, check, describe }: Describe): Promise<Finding> {
  const { name, setting, oldest } = ENGINES[id];
  try {
    await check();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    const { message, remedy } = error as FuelError;
    return wrong(message, remedy ?? `start ${name}, or correct ${setting}`);
  }
  let found: EngineDescription;
  try {
    found = await describe();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return right(`${name} answers, and does not tell its version: ${(error as Error).message}`);
  }
  const { version } = found;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldest;
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
  const detail = `${found.name ?? name} ${version} answers`;
  return isOld ? wrong(detail, `update it to ${oldest.join('.')} or newer`) : right(detail);
}

/** How far the engines' clocks are from this machine's. */
export async function checkClocks(engines: readonly Describe[], now: () => number): Promise<Finding> {
  if (engines.length === 0) return right('everything is embedded: there is one clock');
  const skews = await Promise.all(engines.map((engine) => skewOf(engine, now)));
  const detail = skews
    .map(({ name, ms }) => `${name} ${ms === undefined ? 'not known' : seconds(ms)}`)
    .join(', ');
  if (!skews.some(({ ms = 0 }) => Math.abs(ms) > MAX_SKEW_MS))
    return right(`engine less this machine: ${detail}`);
  return wrong(
    `clocks differ: engine less this machine: ${detail}`,
    'set the clocks by NTP on every machine: timedatectl set-ntp true',
  );
}

async function skewOf(
  { name: id, describe }: Describe,
  now: () => number,
): Promise<{ readonly name: string; readonly ms: number | undefined }> {
  const { name } = ENGINES[id];
  const askedAtMs = now();
  try {
    const { name: found = name, clockMs } = await describe();
    const earliestMs = clockMs - now();
    const latestMs = clockMs + (id === 'eventstoredb' ? CUT_OFF_MS : 0) - askedAtMs;
    const ms = earliestMs > 0 ? earliestMs : Math.min(0, latestMs);
    return { name: found, ms };
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return { name, ms: undefined };
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
