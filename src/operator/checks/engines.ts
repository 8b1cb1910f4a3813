import { type FuelError, isUnavailable } from '../../base/errors.ts';
import type { EngineDescription, Server, ServerKind } from '../../service/engines/engines.ts';
import { type Finding, right, wrong } from './check.ts';

/** Leases, the time a webhook was set and presigned URLs are judged by several clocks; with NTP these differ by less than 0.1 s. */
const MAX_SKEW_MS = 2_000;

/** The embedded engine: it is part of Node. */
export function embeddedEngine(what: string): Finding {
  const { node, sqlite } = process.versions;
  return right(`${what}: embedded, SQLite ${sqlite} of Node ${node}`);
}

/** Whether the engine takes work, and its version is one that the service knows. */
export async function checkEngine(engine: ServerKind & Server): Promise<Finding> {
  const { title, setting, oldestVersion: oldest } = engine;
  try {
    await engine.ping();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    const { message, remedy } = error as FuelError;
    return wrong(message, remedy ?? `start ${title}, or correct ${setting}`);
  }
  let found: EngineDescription;
  try {
    found = await engine.describe();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return right(`${title} answers, and does not tell its version: ${(error as Error).message}`);
  }
  const { version } = found;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldest;
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
  const detail = `${found.name ?? title} ${version} answers`;
  return isOld ? wrong(detail, `update it to ${oldest.join('.')} or newer`) : right(detail);
}

/** How far the engines' clocks are from this machine's. */
export async function checkClocks(
  engines: readonly (ServerKind & Server)[],
  now: () => number,
): Promise<Finding> {
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
  { title, clockStepMs = 0, describe }: ServerKind & Server,
  now: () => number,
): Promise<{ readonly name: string; readonly ms: number | undefined }> {
  const askedAtMs = now();
  try {
    const { name = title, clockMs } = await describe();
    const earliestMs = clockMs - now();
    const latestMs = clockMs + clockStepMs - askedAtMs;
    const ms = earliestMs > 0 ? earliestMs : Math.min(0, latestMs);
    return { name, ms };
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return { name: title, ms: undefined };
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
