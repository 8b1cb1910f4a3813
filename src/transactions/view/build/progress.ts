import type { ViewBuild } from '../view-builds.ts';

export interface BuildProgress {
  readonly percent: number;
  /** Events a second since a command last continued the build. */
  readonly rate: number;
  /** `null` before that is known. */
  readonly seconds_left: number | null;
}

/** How much of the log the segments of a build have covered. `undefined` for one that was dropped or is served. */
export async function buildProgress(build: ViewBuild, nowMs: number): Promise<BuildProgress | undefined> {
  const target = (await build.checkpoint())?.servesFrom;
  if (target === undefined) return undefined;
  const { covered, events } = await coverage(build);
  const resumed = await build.resumed();
  const seconds = Math.max(0, nowMs - (resumed?.atMs ?? nowMs)) / 1000;
  const coveredSince = covered - (resumed?.covered ?? covered);
  return {
    percent: target === 0 ? 100 : Math.min(100, Math.floor((covered / target) * 1000) / 10),
    rate: seconds === 0 ? 0 : Math.round((events - (resumed?.events ?? events)) / seconds),
    seconds_left:
      coveredSince > 0 && seconds > 0 ? Math.ceil(((target - covered) / coveredSince) * seconds) : null,
  };
}

/** Notes how far the build has come, since its rate is counted from here. */
export async function noteResumed(build: ViewBuild, nowMs: number): Promise<void> {
  await build.resume({ atMs: nowMs, ...(await coverage(build)) });
}

async function coverage(build: ViewBuild): Promise<{ readonly covered: number; readonly events: number }> {
  let covered = 0;
  let events = 0;
  for (const segment of await build.segments()) {
    covered += segment.position - segment.after;
    events += segment.events;
  }
  return { covered, events };
}
