const cleanups: (() => void | Promise<void>)[] = [];

/** Has this done when the tests of each file are over: for what a module of the tests keeps between their calls. */
export function atEndOfFile(cleanup: () => void | Promise<void>): void {
  cleanups.push(cleanup);
}

export async function endFile(): Promise<void> {
  for (const cleanup of cleanups.toReversed()) await cleanup();
}
