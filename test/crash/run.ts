import { setTimeout as sleep } from 'node:timers/promises';
import { within } from '../support/waiting.ts';
import { Commands } from './commands.ts';
import type { Engines } from './engines.ts';
import { type Figures, judge } from './judge.ts';
import { Killer } from './killer.ts';
import type { PointLists } from './point-lists.ts';
import { type Kill, Stage } from './stage.ts';
import { Workload } from './workload.ts';

const TOLD_EVERY_MS = 30_000;
/** Work in progress when the time is up ends within this, even on a busy machine. */
const ENDED_WITHIN_MS = 150_000;

export interface RunOptions {
  readonly engines: Engines;
  readonly members: number;
  readonly points: PointLists;
  /** Repeats the run, as far as the operating system's scheduling allows. */
  readonly seed: number;
  /** How long processes are killed. */
  readonly seconds: number;
  /** Runs when all processes have ended. */
  readonly next?: (run: EndedRun) => Promise<void>;
}

/** A judged run of which nothing is left running. */
export interface EndedRun {
  readonly stage: Stage;
  readonly workload: Workload;
  readonly seed: number;
}

export interface Run extends Figures {
  readonly faults: readonly string[];
  readonly kills: readonly Kill[];
}

/** Makes one run on an empty store: starts, works while everything is killed, judges, and stops cleanly. */
export async function crashRun(options: RunOptions): Promise<Run> {
  const { engines, seed, seconds, points } = options;
  const stage = await Stage.prepare({ engines, members: options.members });
  const telling = setInterval(() => console.log(progressOf(stage)), TOLD_EVERY_MS);
  try {
    await stage.start({ points: points.start, seed });
    stage.doing = 'working';
    const workload = new Workload(stage, seed);
    const commands = new Commands(stage, workload, { points, seed: seed + 1_000 });
    const killer = new Killer(stage, { points, seed: seed + 2_000 });
    await during(seconds, (signal) => [workload.run(signal), commands.run(signal), killer.run(signal)]);
    const figures = await judge(stage, workload);
    stage.doing = 'stopping';
    for (const member of stage.members) await member.stop();
    await options.next?.({ stage, workload, seed });
    return { ...figures, faults: stage.faults, kills: stage.kills };
  } catch (error) {
    const lines = [(error as Error).message, progressOf(stage), ...stage.faults];
    throw new Error(lines.join('\n'), { cause: error });
  } finally {
    clearInterval(telling);
    await stage.abandon();
  }
}

function progressOf({ doing, kills, done, retries, lastRefusal, faults }: Stage): string {
  const refused = retries === 0 ? '' : `, ${retries} refused (${lastRefusal})`;
  return `${doing}: ${kills.length} kills, ${done} done${refused}, ${faults.length} faults`;
}

/** Runs all parts until the time is up or one fails. Rejects with its error. */
async function during(seconds: number, begin: (signal: AbortSignal) => Promise<void>[]): Promise<void> {
  const over = new AbortController();
  const parts = begin(over.signal);
  await Promise.race([sleep(seconds * 1_000), ...parts.map((part) => part.catch(() => undefined))]);
  over.abort();
  await within(Promise.all(parts), ENDED_WITHIN_MS, 'the work under way does not end');
}
