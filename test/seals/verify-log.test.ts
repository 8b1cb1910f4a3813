import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openSqliteEventStore } from '../../src/engines/sqlite/event-store/event-store.ts';
import { CheckpointSigner, LogVerifier } from '../../src/seals/checkpoint.ts';
import { originOf } from '../../src/seals/seal-key.ts';
import { lastSeal } from '../../src/seals/seals.ts';
import { verifyLog } from '../../src/seals/verify-log.ts';
import { flipData, flipPage } from '../support/event-store/flip-bytes.ts';
import { record } from '../support/event-store/store-events.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { key, seal, signer } from '../support/seals/sealing.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const path = () => join(temporaryFolder(), 'events.db');

function opened(file: string) {
  const store = openSqliteEventStore({ path: file, clock: new FakeClock() });
  onTestFinished(() => store.close());
  return store;
}

/** Makes five accounts with two events each, sealed in three seals, and one event that is not sealed. */
async function sealedLog() {
  const file = path();
  const store = opened(file);
  for (let id = 1; id <= 5; id++) {
    await record(store, `account-${id}`, `a${id}`, `b${id}`);
    if (id % 2 === 1) await seal(store);
  }
  const note = (await lastSeal(store))?.note ?? '';
  await record(store, 'account-9', 'last');
  return { file, store, note };
}

/** Changes the file like someone who controls the disk. */
function forge(file: string, ...statements: string[]): void {
  const db = new DatabaseSync(file);
  const triggers = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all();
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  for (const statement of statements) db.exec(statement);
  db.close();
}

describe('a log that was sealed', () => {
  test('is proven, with and without a checkpoint, from the beginning and from any seal', async () => {
    const { store, note } = await sealedLog();
    const all = await verifyLog({ store, key });
    expect(all).toMatchObject({ fault: undefined, seals: 3, erased: [] });
    const checkpoint = key.open(note);
    expect(all.sealedSize).toBe(checkpoint?.size);
    expect(await verifyLog({ store, key, checkpoint })).toEqual(all);
    for (let since = 1; since <= all.leaves; since++) {
      const part = await verifyLog({ store, key, since });
      expect([part.fault, part.sealedSize]).toEqual([undefined, all.sealedSize]);
      expect(part.leaves).toBeLessThanOrEqual(all.leaves);
    }
    expect((await verifyLog({ store, key, since: all.sealedSize })).leaves).toBe(2); // the last seal and an event
  });

  test('is continued by another sealer, in seals of any size, and one that reads again seals nothing twice', async () => {
    const { store } = await sealedLog();
    await seal(store);
    const seals = (await store.readStream('seals')).length;
    await record(store, 'account-1', 'c1');
    await seal(store);
    expect((await store.readStream('seals')).length).toBe(seals + 1);
    expect(await verifyLog({ store, key })).toMatchObject({ fault: undefined, seals: seals + 1 });
  });
});

describe('a forged log', () => {
  const of = (stream: string, revision: number) => `WHERE stream = '${stream}' AND revision = ${revision}`;

  test.each([
    [
      'a byte of data',
      'differs',
      'account-2@1',
      [`UPDATE events SET data = replace(data, 'b2', 'c2') ${of('account-2', 1)}`],
    ],
    [
      'a byte of metadata',
      'differs',
      'account-2@0',
      [`UPDATE events SET metadata = replace(metadata, 'test', 'tost') ${of('account-2', 0)}`],
    ],
    ['a type', 'differs', 'account-1@0', [`UPDATE events SET type = 'Other' ${of('account-1', 0)}`]],
    ['an id', 'differs', 'account-5@1', [`UPDATE events SET id = 'other' ${of('account-5', 1)}`]],
    ['a space', 'differs', 'account-5@0', [`UPDATE events SET data = data || ' ' ${of('account-5', 0)}`]],
    ['an event less', 'missing', 'account-3@1', [`DELETE FROM events ${of('account-3', 1)}`]],
    ['a stream less', 'missing', 'account-2@0', [`DELETE FROM events WHERE stream = 'account-2'`]],
    [
      'an event more',
      'inserted',
      'account-1@2',
      [
        'UPDATE events SET position = -position - 1 WHERE position > 2',
        'UPDATE events SET position = -position WHERE position < 0',
        `INSERT INTO events SELECT 3, stream, 2, 'new', type, recorded_at, data, metadata FROM events ${of('account-1', 1)}`,
      ],
    ],
    [
      'two exchanged',
      'moved',
      'account-4@1',
      [
        `UPDATE events SET position = -1 ${of('account-4', 0)}`,
        `UPDATE events SET position = position - 1 ${of('account-4', 1)}`,
        `UPDATE events SET position = (SELECT position + 1 FROM events ${of('account-4', 1)}) ${of('account-4', 0)}`,
      ],
    ],
  ])('with %s is found, by stream and revision', async (_, kind, place, statements) => {
    const { file, store } = await sealedLog();
    await store.close();
    forge(file, ...statements);
    expect(await verifyLog({ store: opened(file), key })).toMatchObject({ fault: { kind, place } });
  });

  test('whose end was cut is found where a seal or a checkpoint knows of it', async () => {
    const { file, store, note } = await sealedLog();
    await store.close();
    forge(file, "DELETE FROM events WHERE stream IN ('account-5', 'account-9')");
    expect(await verifyLog({ store: opened(file), key })).toMatchObject({
      fault: { kind: 'missing', place: 'account-5@0' },
    });
    forge(file, 'DELETE FROM events WHERE position > 8');
    const checkpoint = key.open(note);
    expect(await verifyLog({ store: opened(file), key })).toMatchObject({ fault: undefined });
    expect(await verifyLog({ store: opened(file), key, checkpoint })).toMatchObject({
      fault: { kind: 'checkpoint', reason: expect.stringContaining('cut off') },
    });
  });

  /** Makes a sealed log in a closed file. */
  async function closedLog() {
    const { file, store } = await sealedLog();
    await store.close();
    const db = new DatabaseSync(file);
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    db.close();
    return file;
  }

  test('of which bytes are damaged differs where they were', async () => {
    const file = await closedLog();
    flipData(file, '"a3"', 3);
    expect(await verifyLog({ store: opened(file), key })).toMatchObject({
      fault: { place: expect.stringMatching(/^(account-\d|seals)@\d$/) },
    });
  });

  test('of which a page cannot be read is not proven, and the error names the file', async () => {
    const file = await closedLog();
    flipPage(file, '"name":"a3"');
    await expect(verifyLog({ store: opened(file), key })).rejects.toMatchObject({
      code: 'STORE_DAMAGED',
      message: expect.stringContaining(file),
    });
  });

  test('whose seals cannot be read is not taken for one that was never sealed', async () => {
    const { file, store } = await sealedLog();
    await store.close();
    forge(file, "UPDATE events SET data = '{}' WHERE stream = 'seals'");
    expect(await verifyLog({ store: opened(file), key })).toMatchObject({
      fault: { kind: 'unreadable', place: 'seals@0' },
    });
  });

  test('whose key was replaced is proven by both keys, and by neither alone', async () => {
    const store = opened(path());
    const [old, next] = [1, 2].map(() => generateKeyPairSync('ed25519'));
    if (old === undefined || next === undefined) throw new Error('there are no keys');
    const signerOf = (...keys: KeyObject[]) => new CheckpointSigner(originOf('one'), keys);
    const byOld = signerOf(old.privateKey);
    const byBoth = signerOf(next.privateKey, old.privateKey);
    const byNext = signerOf(next.privateKey, old.publicKey);
    const notes: string[] = [];
    for (const [id, by] of [byOld, byBoth, byNext].entries()) {
      await record(store, `account-${id}`, 'a');
      await seal(store, { by });
      notes.push((await lastSeal(store))?.note ?? '');
    }
    const alone = signerOf(next.privateKey).verifier;
    expect(notes.map((note) => byOld.verifier.open(note) !== undefined)).toEqual([true, true, false]);
    expect(notes.map((note) => alone.open(note) !== undefined)).toEqual([false, true, true]);
    expect(await verifyLog({ store, key: byNext.verifier })).toMatchObject({ fault: undefined, seals: 3 });
    expect(String(LogVerifier.parse(String(byNext.verifier)))).toBe(String(byBoth.verifier));
    for (const one of [byOld.verifier, alone])
      expect(await verifyLog({ store, key: one })).toMatchObject({ fault: { kind: 'seal' } });
  });

  test('whose seals were made anew without the key is found; with the key, by a checkpoint from outside', async () => {
    const { file, store, note } = await sealedLog();
    await store.close();
    forge(
      file,
      `UPDATE events SET data = replace(data, 'b2', 'c2')`,
      "DELETE FROM events WHERE stream = 'seals'",
    );
    const forged = opened(file);
    const other = new CheckpointSigner(originOf('one'), [generateKeyPairSync('ed25519').privateKey]);
    await seal(forged, { by: other });
    expect(await verifyLog({ store: forged, key })).toMatchObject({
      fault: { kind: 'seal', reason: expect.stringContaining('not signed') },
    });
    forge(file, "DELETE FROM events WHERE stream = 'seals'");
    const again = opened(file);
    await seal(again, { by: signer });
    expect(await verifyLog({ store: again, key })).toMatchObject({ fault: undefined });
    expect(await verifyLog({ store: again, key, checkpoint: key.open(note) })).toMatchObject({
      fault: { kind: 'checkpoint' },
    });
  });

  test.each([
    ['root', 'replace(data, \'"root":"\', \'"root":"A\')'],
    ['leaves', 'replace(data, \'"leaves":"\', \'"leaves":"A\')'],
    ['edge', 'replace(data, \'"edge":["\', \'"edge":["A\')'],
  ])('with a seal whose %s was changed is found', async (_, changed) => {
    const { file, store } = await sealedLog();
    await store.close();
    forge(file, `UPDATE events SET data = ${changed} WHERE stream = 'seals' AND revision = 0`);
    const { fault } = await verifyLog({ store: opened(file), key });
    expect(fault).toBeDefined();
  });
});
