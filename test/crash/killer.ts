import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../src/customers/sample/random.ts';
import type { Engine } from './engines.ts';
import type { Member } from './member.ts';
import { drawAll, type PointLists } from './point-lists.ts';
import type { Stage } from './stage.ts';

/** The share of processes that are asked to end instead of being killed. */
const IN_ORDER = 0.1;
/** The share of lives that end at a point. */
const ARMED = 0.75;
const EVERY_MS = [200, 1_400] as const;
/** The same if engines are killed too. */
const EVERY_BESIDE_ENGINES_MS = [500, 3_000] as const;
/** How long a listening process has to reach the point where it kills itself; longer if little work is done. */
const REACHED_WITHIN_MS = { atLeast: 5_000, atMost: 30_000, done: 40 };
/** The share of kills of starting processes that are made. With all of them, a busy machine would never start one. */
const AT_START = 0.06;
/** How long an engine is dead. Then it lives for a number of pieces of the workload, and for a time. */
const DEAD_MS = [0, 2_000] as const;
const DONE_BETWEEN = 8;
const DONE_WITHIN_MS = 20_000;
const ENGINE_EVERY_MS = [500, 4_000] as const;
/** The share of kills that hit all engines at once. */
const ALL = 0.15;

/** Kills processes of the service and engines while the workload runs: at random, and at points. */
export class Killer {
  readonly #stage: Stage;
  readonly #points: PointLists['serve'];
  readonly #seed: number;
  /** The pieces of work that were done when the process was last found starting. */
  readonly #doneAtStart = new Map<Member, number>();

  constructor(stage: Stage, { points, seed }: { readonly points: PointLists; readonly seed: number }) {
    this.#stage = stage;
    this.#points = points.serve;
    this.#seed = seed;
  }

  /** Kills until the signal aborts. Resolves when no process has a point left and every engine is up. */
  async run(signal: AbortSignal): Promise<void> {
    const { members } = this.#stage;
    for (const [index, member] of members.entries()) {
      const random = new Random(this.#seed + 1 + index);
      const points = drawAll(this.#points, random);
      member.nextPoint = () => (random.chance(ARMED) ? points.next().value : undefined);
    }
    await Promise.all([
      this.#killMembers(new Random(this.#seed), signal),
      this.#killEngines(new Random(this.#seed + 100), signal),
    ]);
    for (const member of members) {
      member.nextPoint = () => undefined;
      if (member.isArmed) member.kill();
    }
  }

  async #killMembers(random: Random, signal: AbortSignal): Promise<void> {
    const { members, engines } = this.#stage;
    const everyMs = engines.list.length === 0 ? EVERY_MS : EVERY_BESIDE_ENGINES_MS;
    while (!signal.aborted) {
      await sleep(random.between(everyMs));
      const member = members[random.between([0, members.length - 1])];
      const [inOrder, atStart] = [random.chance(IN_ORDER), random.chance(AT_START)];
      if (member === undefined || !this.#mayBeKilled(member, { atStart })) continue;
      if (inOrder) member.restart();
      else member.kill();
    }
  }

  #mayBeKilled(member: Member, { atStart }: { readonly atStart: boolean }): boolean {
    const { listeningSinceMs, isArmed } = member;
    if (listeningSinceMs === undefined) {
      this.#doneAtStart.set(member, this.#stage.done);
      return atStart;
    }
    const forMs = Date.now() - listeningSinceMs;
    const done = this.#stage.done - (this.#doneAtStart.get(member) ?? 0);
    const { atLeast, atMost } = REACHED_WITHIN_MS;
    return !isArmed || forMs > atMost || (forMs > atLeast && done > REACHED_WITHIN_MS.done);
  }

  /** Checks that the workload makes progress, whatever is killed. */
  async #progress(signal: AbortSignal): Promise<void> {
    const enough = this.#stage.done + DONE_BETWEEN;
    const latestMs = Date.now() + DONE_WITHIN_MS;
    while (this.#stage.done < enough && Date.now() < latestMs && !signal.aborted) await pause(50, signal);
  }

  /** Kills one engine after the other, and sometimes both at once. */
  async #killEngines(random: Random, signal: AbortSignal): Promise<void> {
    const { list } = this.#stage.engines;
    while (list.length > 0) {
      await this.#progress(signal);
      await pause(random.between(ENGINE_EVERY_MS), signal);
      const [at, all, deadMs] = [
        random.between([0, list.length - 1]),
        random.chance(ALL),
        random.between(DEAD_MS),
      ];
      if (signal.aborted) return;
      await Promise.all(
        list.filter((_, index) => all || index === at).map((engine) => this.#killEngine(engine, deadMs)),
      );
    }
  }

  async #killEngine(engine: Engine, deadMs: number): Promise<void> {
    const fromMs = Date.now();
    await engine.kill();
    await sleep(deadMs);
    await engine.start();
    this.#stage.killed(engine.name, 'at random', fromMs);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined); // aborted
}
