const cleanups: (() => void | Promise<void>)[] = [];

/** Has this done when the tests of each file are over: for what a module of the tests keeps between their calls. */
export function atEndOfFile(cleanup: () => void | Promise<void>): void {
  cleanups.push(cleanup);
}

/** Does all of it, also where a part fails; throws the first failure. */
export async function endFile(): Promise<void> {
  const failures: unknown[] = [];
  for (const cleanup of cleanups.toReversed()) {
    try {
      await cleanup();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
