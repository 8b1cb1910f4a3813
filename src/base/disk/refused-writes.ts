import { sharedNumber } from '../thread.ts';

/** Longer than any part that writes waits before it tries again. */
const RECENT_SECONDS = 15;
const lastAt = sharedNumber('fuel: second of the last refused write');

/** The disk has refused to write a file, to whichever thread of this process. */
export function writeRefused(): void {
  Atomics.store(lastAt, 0, nowSeconds());
}

export function wasWriteRefusedLately(): boolean {
  const at = Atomics.load(lastAt, 0);
  return at > 0 && nowSeconds() - at < RECENT_SECONDS;
}

/** Since the machine started: the same in all threads. */
function nowSeconds(): number {
  return process.hrtime()[0];
}
