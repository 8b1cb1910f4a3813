import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { checkExport } from '../../../src/operator/audit/check-export.ts';
import { exportProof } from '../../../src/operator/audit/export-proof.ts';
import { CheckpointSigner } from '../../../src/seals/checkpoint.ts';
import { lastSeal } from '../../../src/seals/seals.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { key, seal } from '../../support/seals/sealing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';

const CHECK = join(import.meta.dirname, '../../../docs/audit/check.py');
/** The script needs one package that Python does not include. */
const hasPython = spawnSync('python3', ['-c', 'import cryptography']).status === 0;
if (!hasPython) console.log('not run here: docs/audit/check.py, since python3 has no package cryptography');

/** A key that signed nothing here, such as one that was replaced. */
const OTHER = new CheckpointSigner('other', [generateKeyPairSync('ed25519').privateKey]).verifier;

const METADATA = { schema_version: 1, at: '2026-09-03T09:00:00.000Z', actor: 'berta', command: 'test' };

/** The log of accounts 7 and 8, sealed twice, exported for account 7. */
async function exported({ since = undefined as string | undefined } = {}) {
  const store = openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock: new FakeClock() });
  onTestFinished(() => store.close());
  const append = async (
    stream: string,
    { type, data }: { type: string; data: unknown },
    at = METADATA.at,
  ) => {
    const event = { id: crypto.randomUUID(), type, data, metadata: { ...METADATA, at } as never };
    await store.append([{ stream, expected: 'any', events: [event] }]);
  };
  for (const id of [1, 2, 3]) await append(`transaction-${id}`, confirmed(id));
  await append('account-7', { type: 'AccountRenamed', data: { account_id: 7, name: 'Größe' } });
  await seal(store);
  const note = (await lastSeal(store))?.note ?? '';
  await append('transaction-4', confirmed(4, { account_id: 8 }));
  await append('transaction-2', voided(2), '2026-09-05T09:00:00.000Z');
  await append('account-8', { type: 'AccountRenamed', data: { account_id: 8, name: 'Other' } });
  await seal(store);
  await append('transaction-5', confirmed(5)); // not sealed yet
  const folder = join(temporaryFolder(), 'export');
  const checkpoint = key.open(note);
  if (checkpoint === undefined) throw new Error('nothing was sealed');
  const sinceMs = since === undefined ? undefined : Date.parse(since);
  const options = { store, accountId: 7, older: { checkpoint, note }, folder, sinceMs };
  return { options, folder, written: await exportProof(options) };
}

const linesIn = (folder: string) => readFileSync(join(folder, 'events.jsonl'), 'utf8').trim().split('\n');
const python = (folder: string) => {
  const { status, stdout, stderr } = spawnSync('python3', [CHECK, folder, `${OTHER},${key}`], {
    encoding: 'utf8',
  });
  return { status, text: stdout + stderr };
};

test('has the events of the account and its transactions, in the order of the log, and no others', async () => {
  const { folder, written } = await exported();
  const events = linesIn(folder).map((line) => JSON.parse(line));
  expect(events.map(({ stream, revision }) => `${stream}@${revision}`)).toEqual([
    ...['transaction-1@0', 'transaction-2@0', 'transaction-3@0', 'account-7@0', 'transaction-2@1'],
  ]);
  expect(written).toEqual({ events: 5, size: 8 });
  expect(readdirSync(folder).sort()).toEqual([
    ...['checkpoint.txt', 'consistency.json', 'events.jsonl', 'older-checkpoint.txt'],
  ]);
  expect(JSON.parse(events[3].data)).toEqual({ account_id: 7, name: 'Größe' });
});

test('can be limited to a range of time, also if the first event of a transaction is older', async () => {
  const { folder } = await exported({ since: '2026-09-04T00:00:00Z' });
  expect(linesIn(folder).map((line) => JSON.parse(line).revision)).toEqual([1]);
});

test('is proven, by the program and by the script for people without it', async () => {
  const { folder } = await exported();
  expect(await checkExport(folder, key)).toEqual({ events: 5, size: 8, older: 4, faults: [] });
  if (hasPython)
    expect(python(folder)).toEqual({ status: 0, text: '5 events are in the tree of 8 events\n' });
});

test.each([
  ['an amount', 'events.jsonl', /line 1 .*transaction-1@0/, (text: string) => text.replace('berta', 'carla')],
  [
    'an index',
    'events.jsonl',
    /line 2 .*transaction-2@0/,
    (text: string) => text.replace('"index":1,', '"index":2,'),
  ],
  ['a proof', 'events.jsonl', /line 1 /, (text: string) => text.replace(/"proof":\["[^"]+",?/, '"proof":[')],
  [
    'the consistency',
    'consistency.json',
    /begin|continue/,
    (text: string) => text.replace(/"([A-Za-z0-9+/]{43}=)"/, `"${'A'.repeat(43)}="`),
  ],
])('that has %s changed is not, and it is named', async (_, file, named, change) => {
  const { folder } = await exported();
  const before = readFileSync(join(folder, file), 'utf8');
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(join(folder, file), after);
  const { faults } = await checkExport(folder, key);
  expect(faults).toEqual([expect.stringMatching(named)]);
  if (hasPython) expect(python(folder)).toEqual({ status: 1, text: expect.stringMatching(named) });
});

test('whose checkpoint another key signed is refused', async () => {
  const { folder } = await exported();
  const path = join(folder, 'checkpoint.txt');
  writeFileSync(path, readFileSync(path, 'utf8').replace(/\n8\n/, '\n9\n'));
  await expect(checkExport(folder, key)).rejects.toMatchObject({ code: 'REFUSED' });
  if (hasPython) expect(python(folder).status).toBe(1);
});

test('is refused in a folder that others may write to, and writes nothing there', async () => {
  const { options } = await exported();
  const folder = temporaryFolder();
  chmodSync(folder, 0o777);
  await expect(exportProof({ ...options, folder })).rejects.toThrow(
    `users other than its owner may use ${folder}`,
  );
  expect(readdirSync(folder)).toEqual([]);
});

test('is refused if the folder has files, or nothing is sealed', async () => {
  const { options } = await exported();
  await expect(exportProof(options)).rejects.toThrow('not empty');
  const store = openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock: new FakeClock() });
  onTestFinished(() => store.close());
  await expect(exportProof({ ...options, store, folder: temporaryFolder() })).rejects.toThrow(
    'nothing is sealed',
  );
});
