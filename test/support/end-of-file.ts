const cleanups: (() => void | Promise<void>)[] = [];

/** Does this when the tests of each file are over, for modules of tests that keep something between calls. */
export function atEndOfFile(cleanup: () => void | Promise<void>): void {
  cleanups.push(cleanup);
}

/** Does all of it, even if a part fails. Throws the first failure. */
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
