import { mkdirSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { Env } from '../support/service/commands.ts';

const PRELOAD = new URL('./crash-points.ts', import.meta.url).href;
/** The compile cache of modules that the preload changes: separate from the usual one, and kept between runs. */
const COMPILE_CACHE = join(tmpdir(), `fuel-crash-compiled-${userInfo().uid}`);
const DEFAULT_SECONDS = 15;

/** The environment in which a process of the service kills itself at a point, such as `after-enqueue:3`. */
export function crashingAt(point: string): Env {
  // Otherwise the first two processes might both create it, and one would run without it.
  mkdirSync(COMPILE_CACHE, { recursive: true, mode: 0o700 });
  return {
    FUEL_CRASH_POINT: point,
    NODE_OPTIONS: `--import ${PRELOAD}`,
    NODE_COMPILE_CACHE: COMPILE_CACHE,
  };
}

/** Returns the seed of the run: `FUEL_CRASH_SEED`, else a random one. */
export function crashSeed(): number {
  const given = process.env.FUEL_CRASH_SEED;
  return given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
}

/** Returns for how long processes are killed: `FUEL_CRASH_SECONDS`. */
export function crashSeconds(): number {
  return Number(process.env.FUEL_CRASH_SECONDS ?? DEFAULT_SECONDS);
}
