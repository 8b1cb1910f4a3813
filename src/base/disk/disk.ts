import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { sharedNumber } from '../thread.ts';

const MIN_FREE_BYTES = 1e9;
const MIN_FREE_SHARE = 0.05;
/** The space that the commit of one batch may need. With less free, the disk counts as full. */
const FULL_BYTES = 1024 * 1024;
export const MAKE_SPACE =
  'make space or enlarge the disk: at least 1 GB and 5 % must be free, or commits fail';

/** A refused write counts for this long, which is longer than any writing part waits before it tries again. */
const RECENT_SECONDS = 15;
/** The second of the last refused write since the boot, shared by all threads. */
const lastRefusal = sharedNumber('fuel: second of the last refused write');

export interface DiskState {
  readonly freeBytes: number;
  /** The folder and its free space, for people. */
  readonly text: string;
  /** True if so little is free that somebody must act. */
  readonly isLow: boolean;
  /** The reason why nothing more can be recorded; `undefined` if it can. */
  readonly refusal: string | undefined;
}

/** Reads the state of the disk that holds the folder, or that would hold it once it is made. */
export async function readDisk(folder: string, read: typeof statfs = statfs): Promise<DiskState> {
  let path = resolve(folder);
  while (!existsSync(path)) path = dirname(path);
  const { bavail, bfree, blocks, bsize } = await read(path);
  const freeBytes = bavail * bsize;
  const share = blocks === 0 ? 1 : bavail / blocks;
  const usableBytes = process.geteuid?.() === 0 ? bfree * bsize : freeBytes; // some blocks may be reserved for root
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

/** Notes for all threads of this process that the disk has refused a write. */
export function writeRefused(): void {
  Atomics.store(lastRefusal, 0, process.hrtime()[0]);
}

export function wasWriteRefusedLately(): boolean {
  const at = Atomics.load(lastRefusal, 0);
  return at > 0 && process.hrtime()[0] - at < RECENT_SECONDS;
}
