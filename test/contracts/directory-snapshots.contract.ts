import { describe, expect, onTestFinished, test } from 'vitest';
import type { SealKeys } from '../../src/accounts/directory/snapshots/chunks.ts';
import type {
  DirectorySnapshots,
  SnapshotHeader,
  StoredSnapshot,
} from '../../src/accounts/directory/snapshots/snapshots.ts';
import { sealKeys } from '../support/accounts/seal-keys.ts';

export interface SnapshotsUnderTest {
  readonly snapshots: DirectorySnapshots;
  /** As another process opens it, with the same master key unless others are given. */
  readonly second: (keys?: SealKeys) => DirectorySnapshots;
  /** Whether what is stored shall lose a part, change in one, or be said to be as of position 11. */
  readonly damage: (how: (typeof DAMAGES)[number]) => Promise<void>;
  /** How many snapshots have something stored. */
  readonly generations: () => Promise<number>;
}

const DAMAGES = ['lose', 'change', 'position'] as const;

/** What a process that starts relies on. `open` gives an empty one; the suite closes it. */
export function directorySnapshotsContract(open: () => Promise<SnapshotsUnderTest>): void {
  async function opened() {
    const { snapshots, second, ...rest } = await open();
    onTestFinished(() => snapshots.close());
    const other = second();
    onTestFinished(() => other.close());
    return { snapshots, other, second, ...rest };
  }
  const at = (position: number): SnapshotHeader => ({ version: 3, storeId: '$store', position });
  const tenParts = (name: string) => Array.from({ length: 10 }, (_, n) => `${name} ${n}`);
  const bytesOf = (...texts: readonly string[]) => texts.map((text) => Buffer.from(text));
  const tenPartsOf = (name: string) => bytesOf(...tenParts(name));

  async function textOf(stored: StoredSnapshot | undefined): Promise<string[] | undefined> {
    return stored && Array.fromAsync(stored.parts, (part) => Buffer.from(part).toString());
  }

  test('where nothing was saved there is nothing', async () => {
    const { snapshots } = await opened();
    expect(await snapshots.load()).toBeUndefined();
  });

  test('what one process saves another loads: the header, and every part unchanged, in order', async () => {
    const { snapshots, other } = await opened();
    const long = `${'x'.repeat(8 * 1024 * 1024 - 1)}öß€😀`; // cut within a character
    const parts = ['first', '', long, 'Öffi\n\u0000\u2028', 'last'];
    await snapshots.save(at(2 ** 40), bytesOf(...parts));
    const stored = await other.load();
    expect(stored?.header).toEqual(at(2 ** 40));
    expect((await textOf(stored))?.map((text) => text.length)).toEqual(parts.map((text) => text.length));
    expect(await textOf(await other.load())).toEqual(parts);
  });

  test('one that is saved later replaces it, whatever its position', async () => {
    const { snapshots, other } = await opened();
    for (const position of [10, 20, 5]) await snapshots.save(at(position), tenPartsOf(`${position}`));
    const stored = await other.load();
    expect(stored?.header).toEqual(at(5));
    expect(await textOf(stored)).toEqual(tenParts('5'));
  });

  test('one that is replaced while it is loaded is still read whole', async () => {
    const { snapshots, other } = await opened();
    await snapshots.save(at(10), tenPartsOf('10'));
    const loading = await other.load();
    await snapshots.save(at(20), tenPartsOf('20'));
    expect(await textOf(loading)).toEqual(tenParts('10'));
  });

  test('of two that are saved at once the one with the later position stays, whole', async () => {
    for (const [mine, yours] of [
      [10, 20],
      [20, 10],
    ] as const) {
      const { snapshots, other } = await opened();
      const saving = [
        snapshots.save(at(mine), tenPartsOf(`${mine}`)),
        other.save(at(yours), tenPartsOf(`${yours}`)),
      ];
      await Promise.all(saving);
      const stored = await snapshots.load();
      expect(stored?.header).toEqual(at(20));
      expect(await textOf(stored)).toEqual(tenParts('20'));
    }
  });

  test('one whose parts fail while it is saved rejects with their error and changes nothing', async () => {
    const { snapshots, generations } = await opened();
    await snapshots.save(at(10), tenPartsOf('10'));
    const failure = new Error('stopped');
    const failing = function* () {
      yield Buffer.from('first');
      throw failure;
    };
    await expect(snapshots.save(at(20), failing())).rejects.toBe(failure);
    expect(await textOf(await snapshots.load())).toEqual(tenParts('10'));
    expect(await generations()).toBe(1);
  });

  test('no more than the present one and the one before it are kept', async () => {
    const { snapshots, other, generations } = await opened();
    for (const position of [1, 2, 3, 4, 5]) {
      await (position % 2 === 0 ? snapshots : other).save(at(position), tenPartsOf(`${position}`));
    }
    expect(await generations()).toBe(2);
  });

  describe('reading the parts rejects', () => {
    test.each(DAMAGES)('where one is missing, or anything was changed: %s', async (how) => {
      const { snapshots, other, damage } = await opened();
      await snapshots.save(at(10), tenPartsOf('10'));
      await damage(how);
      await expect(textOf(await other.load())).rejects.toThrow(/not as it was saved/);
    });
  });

  test('of another master key is not believed, one of a former master key is', async () => {
    const { snapshots, second } = await opened();
    await snapshots.save(at(10), tenPartsOf('10'));
    for (const [keys, message] of [
      [sealKeys(2), /another master key/],
      [sealKeys(), /no master key/],
    ] as const) {
      const other = second(keys);
      await expect(textOf(await other.load())).rejects.toThrow(message);
      await other.close();
    }
    const rotated = second(sealKeys(2, 1));
    onTestFinished(() => rotated.close());
    expect(await textOf(await rotated.load())).toEqual(tenParts('10'));
    await rotated.save(at(20), tenPartsOf('20'));
    await expect(textOf(await snapshots.load())).rejects.toThrow(/another master key/);
  });

  test('after it is closed every call rejects with STORE_CLOSED', async () => {
    const { snapshots, other } = await opened();
    await snapshots.save(at(10), tenPartsOf('10'));
    const loading = await snapshots.load();
    await snapshots.close();
    const closed = { code: 'STORE_CLOSED' };
    await expect(snapshots.load()).rejects.toMatchObject(closed);
    await expect(snapshots.save(at(20), bytesOf('x'))).rejects.toMatchObject(closed);
    await expect(textOf(loading)).rejects.toMatchObject(closed);
    expect(await textOf(await other.load())).toEqual(tenParts('10'));
  });
}
