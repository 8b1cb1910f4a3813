import type { BuildCheckpoint } from '../checkpoint.ts';

export interface BuildProgress {
  readonly percent: number;
  /** Events a second since a process last began or continued the build. */
  readonly rate: number;
  /** `null` before that is known. */
  readonly seconds_left: number | null;
}

export function buildProgress(
  { position, servesFrom, since }: BuildCheckpoint,
  nowMs: number,
): BuildProgress {
  const seconds = Math.max(0, nowMs - since.atMs) / 1000;
  const perSecond = seconds === 0 ? 0 : (position - since.position) / seconds;
  return {
    percent: servesFrom === 0 ? 100 : Math.min(100, Math.floor((position / servesFrom) * 1000) / 10),
    rate: seconds === 0 ? 0 : Math.round(since.events / seconds),
    seconds_left: perSecond > 0 ? Math.ceil(Math.max(0, servesFrom - position) / perSecond) : null,
  };
}
