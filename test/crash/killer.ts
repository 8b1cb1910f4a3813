import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../src/demo/random.ts';
import type { Engine } from './engines.ts';
import type { Member } from './member.ts';
import { drawAll, type PointLists } from './point-lists.ts';
import type { Stage } from './stage.ts';

/** The share of lives that are to end at a point. */
const ARMED = 0.75;
const EVERY_MS = [200, 1_400] as const;
/** A process that is to kill itself gets so long to come to its point. */
const REACHED_WITHIN_MS = 10_000;
/** An engine is dead this long, and left alone for so long after: work must get on in between. */
const DEAD_MS = [0, 2_000] as const;
const ENGINE_EVERY_MS = [2_500, 7_000] as const;

/** Kills processes of the service and engines while the workload runs: at random, and at points. */
export class Killer {
  readonly #stage: Stage;
  readonly #points: PointLists['serve'];
  readonly #seed: number;

  constructor(stage: Stage, { points, seed }: { readonly points: PointLists; readonly seed: number }) {
    this.#stage = stage;
    this.#points = points.serve;
    this.#seed = seed;
  }

  /** Kills until the signal aborts; resolves when no process is left that is to kill itself, and every engine is up. */
  async run(signal: AbortSignal): Promise<void> {
    const { members, engines } = this.#stage;
    for (const [index, member] of members.entries()) {
      const random = new Random(this.#seed + 1 + index);
      const points = drawAll(this.#points, random);
      member.nextPoint = () => (random.chance(ARMED) ? points.next().value : undefined);
    }
    await Promise.all([
      this.#killMembers(new Random(this.#seed), signal),
      ...engines.list.map((engine, index) =>
        this.#killEngine(engine, new Random(this.#seed + 100 + index), signal),
      ),
    ]);
    for (const member of members) {
      member.nextPoint = () => undefined;
      if (member.isArmed) member.kill();
    }
  }

  async #killMembers(random: Random, signal: AbortSignal): Promise<void> {
    const { members } = this.#stage;
    while (!signal.aborted) {
      await sleep(random.between(EVERY_MS));
      const member = members[random.between([0, members.length - 1])];
      const inOrder = random.chance(0.1);
      if (member === undefined || isOnItsWay(member)) continue;
      if (inOrder) member.restart();
      else member.kill();
    }
  }

  async #killEngine(engine: Engine, random: Random, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(random.between(ENGINE_EVERY_MS), undefined, { signal }).catch(() => undefined);
      const deadMs = random.between(DEAD_MS);
      if (signal.aborted) return;
      const fromMs = Date.now();
      await engine.kill();
      await sleep(deadMs);
      await engine.start();
      this.#stage.killed(engine.name, 'at random', fromMs);
    }
  }
}

function isOnItsWay(member: Member): boolean {
  return member.isArmed && member.ageMs < REACHED_WITHIN_MS;
}
