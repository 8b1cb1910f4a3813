import { registerHooks } from 'node:module';
import { CRASH_SITES, type CrashSite, readPoint } from './points.ts';

/**
 * Loaded before a process of the service, and so in each of its threads, by `--import` in NODE_OPTIONS. At the point
 * that `FUEL_CRASH_POINT` names (`after-enqueue:3`), the process is killed with SIGKILL. The modules are changed while
 * they are loaded, since a line at the end of a module reaches even what it does not export. A site that no longer
 * exists ends the process with an error.
 */
const ROOT = new URL('../../', import.meta.url);
const HELPER = 'fuelCrashPoint';

type Call = (this: unknown, ...args: unknown[]) => unknown;

const point = readPoint(process.env.FUEL_CRASH_POINT ?? '');
let reached = 0;

function reach(side: 'before' | 'after'): void {
  if (side === point.side && ++reached === point.time) process.kill(process.pid, 'SIGKILL');
}

/** Wraps a call with the point before or after it, if this is the requested call. */
function around(site: string, call: unknown): Call {
  if (typeof call !== 'function') throw new Error(`crash site ${site}: there is nothing to call`);
  if (site !== point.name) return call as Call;
  return function wrapped(this: unknown, ...args: unknown[]): unknown {
    reach('before');
    const result: unknown = call.apply(this, args);
    if (!(result instanceof Promise)) {
      reach('after');
      return result;
    }
    return result.then((value: unknown) => {
      reach('after');
      return value;
    });
  };
}

/** Wraps a commit. `before` it means inside the write transaction, after its work. */
function beforeCommit(write: Call): Call {
  return function wrapped(this: unknown, work: unknown): unknown {
    return write.call(this, () => {
      const result = (work as () => unknown)();
      reach('before');
      return result;
    });
  };
}

const helper = {
  fn: around,
  method(site: string, of: Record<string, unknown>, name: string): void {
    const isWithin = site === 'commit' && point.name === site && point.side === 'before';
    of[name] = isWithin ? beforeCommit(of[name] as Call) : around(site, of[name]);
  },
  factory(site: string, make: unknown, name: string): Call {
    if (typeof make !== 'function') throw new Error(`crash site ${site}: there is nothing to call`);
    return function wrapped(this: unknown, ...args: unknown[]): unknown {
      const made = make.apply(this, args) as Record<string, unknown>;
      made[name] = around(site, made[name]);
      return made;
    };
  },
};
Object.assign(globalThis, { [HELPER]: helper });

function patchOf({ name, target }: CrashSite): string {
  const site = `'${name}'`;
  if ('fn' in target) return `${target.fn} = ${HELPER}.fn(${site}, ${target.fn});`;
  const { method } = target;
  if ('ofClass' in target) return `${HELPER}.method(${site}, ${target.ofClass}.prototype, '${method}');`;
  return `${target.ofFactory} = ${HELPER}.factory(${site}, ${target.ofFactory}, '${method}');`;
}

const patches = Map.groupBy(CRASH_SITES, ({ file }) => new URL(file, ROOT).href);

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    const sites = patches.get(url);
    if (sites === undefined) return loaded;
    return { ...loaded, source: `${loaded.source}\n${sites.map(patchOf).join('\n')}\n` };
  },
});
