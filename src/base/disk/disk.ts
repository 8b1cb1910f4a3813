import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { sharedNumber } from '../thread.ts';

const MIN_FREE_BYTES = 1e9;
const MIN_FREE_SHARE = 0.05;
/** A commit of one batch may need so much. */
const FULL_BYTES = 1024 * 1024;
export const MAKE_SPACE =
  'make space or enlarge the disk: at least 1 GB and 5 % must be free, or commits fail';

/** Longer than any part that writes waits before it tries again. */
const RECENT_SECONDS = 15;
/** Since the machine started: the same in all threads. */
const lastRefusal = sharedNumber('fuel: second of the last refused write');

export interface DiskState {
  readonly freeBytes: number;
  /** The folder and how much of its disk is free. */
  readonly text: string;
  /** So little is free that somebody must act. */
  readonly isLow: boolean;
  /** Why nothing more can be recorded. */
  readonly refusal: string | undefined;
}

/** The disk of a folder, or of the one in which it would be made. */
export async function readDisk(folder: string, read: typeof statfs = statfs): Promise<DiskState> {
  let path = resolve(folder);
  while (!existsSync(path)) path = dirname(path);
  const { bavail, bfree, blocks, bsize } = await read(path);
  const freeBytes = bavail * bsize;
  const share = blocks === 0 ? 1 : bavail / blocks;
  const usableBytes = process.geteuid?.() === 0 ? bfree * bsize : freeBytes; // a part may be kept for root
  const refusal =
    usableBytes < FULL_BYTES
      ? `the disk of ${path} is full: ${Math.floor(usableBytes / 1024)} KiB are left`
      : wasWriteRefusedLately()
        ? `the disk of ${path} refuses commits`
        : undefined;
  return {
    freeBytes,
    text: `${path}: ${(freeBytes / 1e9).toFixed(1)} GB free, ${Math.floor(share * 100)} %`,
    isLow: freeBytes < MIN_FREE_BYTES || share < MIN_FREE_SHARE,
    refusal,
  };
}

/** The disk has refused to write a file, to whichever thread of this process. */
export function writeRefused(): void {
  Atomics.store(lastRefusal, 0, process.hrtime()[0]);
}

export function wasWriteRefusedLately(): boolean {
  const at = Atomics.load(lastRefusal, 0);
  return at > 0 && process.hrtime()[0] - at < RECENT_SECONDS;
}
