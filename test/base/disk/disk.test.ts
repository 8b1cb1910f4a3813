import { beforeEach, describe, expect, test, vi } from 'vitest';
import { readDisk, wasWriteRefusedLately, writeRefused } from '../../../src/base/disk/disk.ts';
import { sharedNumber } from '../../../src/base/thread.ts';
import { toKnownError } from '../../../src/engines/sqlite/driver/errors.ts';
import type { StoreName } from '../../../src/service/engines/engines.ts';
import { storeDisk } from '../../../src/service/engines/store-disk.ts';

const MIB = 1024 * 1024;
const lastRefusal = sharedNumber('fuel: second of the last refused write');

/** The answer of statfs for a disk of a terabyte with blocks of one byte. */
const withFree = (bfree: number, bavail = bfree) =>
  (async () => ({ bfree, bavail, blocks: 1e12, bsize: 1 })) as never;
const atSecond = (second: number) => vi.spyOn(process, 'hrtime').mockReturnValue([second, 0]);

beforeEach(() => {
  lastRefusal[0] = 0;
  return () => {
    vi.restoreAllMocks();
    lastRefusal[0] = 0;
  };
});

describe('a disk', () => {
  test('is full below a MiB, of what this user may use: a part may be kept for root', async () => {
    const userId = vi.spyOn(process, 'geteuid');
    userId.mockReturnValue(1_000);
    expect((await readDisk('/', withFree(MIB))).refusal).toBeUndefined();
    expect((await readDisk('/', withFree(2 * MIB, MIB - 1))).refusal).toMatch(/ is full: 1023 KiB are left/);
    userId.mockReturnValue(0);
    expect((await readDisk('/', withFree(2 * MIB, 0))).refusal).toBeUndefined();
    expect((await readDisk('/', withFree(MIB - 1))).refusal).toMatch(/ is full/);
  });

  test('refuses commits for 15 s after it has refused one, in all threads, however much is free', async () => {
    atSecond(5);
    expect(wasWriteRefusedLately()).toBe(false); // also soon after the boot
    writeRefused();
    expect(lastRefusal[0]).toBe(5);
    atSecond(19);
    expect((await readDisk('/', withFree(1e12))).refusal).toBe('the disk of / refuses commits');
    atSecond(20);
    expect((await readDisk('/', withFree(1e12))).refusal).toBeUndefined();
  });

  test.each([
    [8, 'read-only', true],
    [10, 'an I/O error', true],
    [13 + 256, 'full, by an extended code', true],
    [7, 'out of memory', false],
    [5, 'locked', false],
  ])('has refused a write where SQLite says %i, %s: %s', (errcode, _, refused) => {
    toKnownError('events.db', Object.assign(new Error(), { errcode }));
    expect(wasWriteRefusedLately()).toBe(refused);
  });

  test('is of no concern where servers have all, and says how long pulls are answered where it is full', async () => {
    const refusalOf = async (...embedded: readonly StoreName[]) =>
      (await storeDisk({ FUEL_DATA_DIR: '/' }, { embedded })?.())?.refusal;
    expect(storeDisk({ FUEL_DATA_DIR: '/' }, { embedded: [] })).toBeUndefined();
    writeRefused();
    expect(await refusalOf('store', 'view')).toMatch(
      /refuses commits\. Nothing is recorded .* as long as its files/,
    );
    expect(await refusalOf('view')).toMatch(/pulls are answered for 6 s after/);
    expect(await refusalOf('store')).toBeDefined();
    lastRefusal[0] = 0;
    expect(await refusalOf('store')).toBeUndefined();
  });
});
