import { readdirSync, readlinkSync } from 'node:fs';

/**
 * Returns the same object with a hook before each call of some of its methods, which return promises: what another
 * process does at that moment, or an error that ends the work there. `before` gets the method's name.
 */
export function interposed<T extends object>(
  whole: T,
  methods: readonly (keyof T & string)[],
  before: (method: string) => void | Promise<void>,
): T {
  const get = (target: T, name: string | symbol): unknown => {
    const value: unknown = Reflect.get(target, name, target);
    if (typeof value !== 'function') return value;
    if (!methods.some((method) => method === name)) return value.bind(target);
    return async (...given: unknown[]): Promise<unknown> => {
      await before(String(name));
      return value.apply(target, given);
    };
  };
  return new Proxy(whole, { get });
}

/** Returns the same object with these methods replaced. */
export function replacing<T extends object>(whole: T, methods: Partial<T>): T {
  return new Proxy(whole, {
    get(target, name) {
      const value: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Counts steps, notes their names, and ends the work before one of them, as a killed process would. */
export class Steps {
  readonly done: string[] = [];
  readonly #left: number;

  /** `most`: how many steps are done; by default all. */
  constructor(most = Infinity) {
    this.#left = most;
  }

  readonly before = (name: string): void => {
    if (this.done.length >= this.#left) throw new Error(`ended before ${name}`);
    this.done.push(name);
  };
}

/** Counts the open files of this process whose path begins with this. */
export function openFiles(path: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => targetOf(fd).startsWith(path)).length;
}

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return ''; // the directory handle of this look itself
  }
}
