import type { Server, ServerKind } from '../../service/engines/engines.ts';
import { type Finding, right, wrong } from './check.ts';

type EngineWithClock = Pick<ServerKind & Server, 'title' | 'clockStepMs' | 'describe'>;

/**
 * Receivers refuse a signature whose time is five minutes off. Leases, the time a webhook was set and presigned URLs are
 * judged by several clocks; with NTP these differ by less than 0.1 s.
 */
const MAX_SKEW_MS = 2_000;

/** How far the engines' clocks are from this machine's. */
export async function checkClocks(engines: readonly EngineWithClock[], now: () => number): Promise<Finding> {
  if (engines.length === 0) return right('the embedded stores go by the clock of this machine');
  const skews = await Promise.all(engines.map((engine) => skewOf(engine, now)));
  const named = skews.map(
    ({ name, ms }) => `${name} ${ms === undefined ? 'not known' : `${(ms / 1000).toFixed(1)} s`}`,
  );
  const detail = `the engines' clocks less this machine's: ${named.join(', ')}`;
  if (!skews.some(({ ms = 0 }) => Math.abs(ms) > MAX_SKEW_MS)) return right(detail);
  return wrong(
    `clocks differ, and receivers refuse what is signed five minutes off: ${detail}`,
    'run chrony on every machine: docs/operations/troubleshooting.md, "A wrong clock"',
  );
}

/** Nothing is known of one that does not answer: another check says so. */
async function skewOf({ title, clockStepMs = 0, describe }: EngineWithClock, now: () => number) {
  const askedAtMs = now();
  const found = await describe().catch(() => undefined);
  if (found === undefined) return { name: title, ms: undefined };
  const earliestMs = found.clockMs - now();
  const latestMs = found.clockMs + clockStepMs - askedAtMs;
  return { name: found.name ?? title, ms: earliestMs > 0 ? earliestMs : Math.min(0, latestMs) };
}
