import { world } from '../../../src/base/world.ts';
import { mail } from '../../../src/push/notices/mailer.ts';
import { network } from '../../../src/push/targets/network.ts';
import { machine } from '../../../src/service/ops/machine.ts';
import type { Chance } from './chance.ts';
import { owners, type Timeline, type Timer } from './timeline.ts';

/** The replacements for what a process uses besides time and chance. */
interface Replacements {
  readonly network: object;
  readonly mail: object;
  /** Starts a thread of the process whose code is running. */
  readonly thread: typeof world.thread;
  readonly listen: typeof world.listen;
}

/** Replaces the real world by a simulation. Returns a function that undoes it. */
export function replaceWorld(timeline: Timeline, chance: Chance, replacements: Replacements): () => void {
  const { thread, listen } = replacements;
  const undo = [
    replaced(world, { ...worldOf(timeline, chance), thread, listen }),
    replaced(network, replacements.network),
    replaced(mail, replacements.mail),
    replaced(machine, MEASURES_NOTHING),
  ];
  return () => {
    for (const each of undo) each();
  };
}

/** Measures nothing, since the measurements of killed processes would be kept forever. */
const MEASURES_NOTHING = {
  collectDefaultMetrics: () => undefined,
  monitorEventLoopDelay: () => ({
    count: 0,
    max: 0,
    enable: () => true,
    disable: () => true,
    reset: () => undefined,
  }),
};

function worldOf(timeline: Timeline, chance: Chance) {
  /** The singletons of each process. */
  const singles = new WeakMap<object, Map<unknown, unknown>>();
  const sleep = <T>(ms = 1, value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T | undefined> =>
    new Promise((resolve, reject) => {
      const abort = (): void => {
        timeline.clear(timer);
        reject(new DOMException('The operation was aborted', 'AbortError'));
      };
      const timer = timeline.set(ms, () => {
        signal?.removeEventListener('abort', abort);
        resolve(value);
      });
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
  return {
    self: () => ({ pid: 1, host: owners.getStore()?.name ?? 'world' }),
    clockMs: () => Math.floor(timeline.nowMs + (owners.getStore()?.clockMs ?? 0)),
    steadyMs: () => timeline.nowMs,
    setTimeout: (run: () => void, ms = 1) => timeline.set(Math.max(1, ms), run),
    clearTimeout: (timer?: Timer) => timeline.clear(timer),
    setInterval(run: () => void, ms: number) {
      let timer: Timer;
      const again = (): void => {
        timer = timeline.set(ms, again);
        run();
      };
      timer = timeline.set(ms, again);
      const interval = { ref: () => interval, unref: () => interval, end: () => timeline.clear(timer) };
      return interval;
    },
    clearInterval: (interval?: { end(): void }) => interval?.end(),
    setImmediate: (run: () => void) => timeline.set(0, run),
    sleep,
    nextTurn: <T>(value?: T) => sleep(0, value),
    timeoutSignal(ms: number) {
      const controller = new AbortController();
      timeline.set(ms, () => controller.abort());
      return controller.signal;
    },
    single<T>(Kind: new () => T): T {
      const owner = owners.getStore() ?? timeline;
      const own = singles.get(owner) ?? new Map<unknown, unknown>();
      singles.set(owner, own);
      if (!own.has(Kind)) own.set(Kind, new Kind());
      return own.get(Kind) as T;
    },
    random: () => chance.next(),
    randomBytes: (count: number) => chance.bytes(count),
    randomInt: (from: number, to?: number) =>
      to === undefined ? chance.int(from) : from + chance.int(to - from),
    randomUUID: () => chance.uuid(),
  };
}

/** Replaces members of an object until the returned function is called. */
function replaced(target: object, by: object): () => void {
  const before = Object.getOwnPropertyDescriptors(target);
  for (const [name, value] of Object.entries(by))
    Object.defineProperty(target, name, { value, configurable: true, enumerable: true });
  return () => Object.defineProperties(target, before);
}
