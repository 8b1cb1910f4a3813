import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SharingSource, startingFrom } from '../../../../src/accounts/directory/snapshots/shared.ts';
import type { DirectorySnapshots } from '../../../../src/accounts/directory/snapshots/snapshots.ts';
import { openSqliteDirectorySnapshots } from '../../../../src/accounts/directory/snapshots/sqlite.ts';
import { sealKeys } from '../../../support/accounts/seal-keys.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const HEADER = { version: 1, storeId: 'store', position: 10 };
const PARTS = ['first', '', 'the last'];

async function saved(): Promise<DirectorySnapshots> {
  const snapshots = openSqliteDirectorySnapshots({
    path: join(temporaryFolder(), 'directory.db'),
    keys: sealKeys(1),
  });
  onTestFinished(() => snapshots.close());
  await snapshots.save(
    HEADER,
    PARTS.map((part) => Buffer.from(part)),
  );
  return snapshots;
}

async function contentOf(source: Pick<DirectorySnapshots, 'load'>) {
  const stored = await source.load();
  const parts = stored && (await Array.fromAsync(stored.parts));
  return { header: stored?.header, parts: parts?.map((part) => Buffer.from(part).toString()) };
}

test('what one thread has loaded another starts from, in the same memory, without the store', async () => {
  const snapshots = await saved();
  const source = new SharingSource(snapshots);
  expect(await contentOf(source)).toEqual({ header: HEADER, parts: PARTS });
  const handedOver = structuredClone(source.loaded); // as a thread gets it: shared memory is not copied
  await snapshots.close();
  const thread = startingFrom(handedOver, snapshots);
  expect(await contentOf(thread)).toEqual({ header: HEADER, parts: PARTS });
  const [part] = await Array.fromAsync((await thread.load())?.parts ?? []);
  part?.set(Buffer.from('F'));
  expect((await contentOf({ load: startingFrom(source.loaded, snapshots).load })).parts?.[0]).toBe('First');
});

test('a snapshot that was not read to its end is not handed over: the thread loads the stored one', async () => {
  const snapshots = await saved();
  const source = new SharingSource(snapshots);
  for await (const _ of (await source.load())?.parts ?? []) break;
  expect(source.loaded).toBeUndefined();
  expect(await contentOf(startingFrom(source.loaded, snapshots))).toEqual({ header: HEADER, parts: PARTS });
});

test('where there is none there is nothing to hand over', async () => {
  const snapshots = openSqliteDirectorySnapshots({
    path: join(temporaryFolder(), 'directory.db'),
    keys: sealKeys(1),
  });
  onTestFinished(() => snapshots.close());
  const source = new SharingSource(snapshots);
  expect([await source.load(), source.loaded]).toEqual([undefined, undefined]);
});
