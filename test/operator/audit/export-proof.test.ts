import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { checkExport } from '../../../src/operator/audit/check-export.ts';
import { exportProof } from '../../../src/operator/audit/export-proof.ts';
import { CheckpointSigner } from '../../../src/seals/checkpoint.ts';
import { lastSeal } from '../../../src/seals/seals.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { CHECK, hasPython, PythonChecker } from '../../support/seals/python-checker.ts';
import { key, seal } from '../../support/seals/sealing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';

/** A key that signed nothing here, such as one that was replaced. */
const OTHER = new CheckpointSigner('other', [generateKeyPairSync('ed25519').privateKey]).verifier;

/** The result of a check of the export if nothing is wrong. */
const PROVEN = { events: 5, streams: 4, left_out: 0, size: 8, older: 4, faults: [] };
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

const linesIn = (folder: string, name = 'events.jsonl') =>
  readFileSync(join(folder, name), 'utf8').trim().split('\n');
const KEYS = `${OTHER},${key}`;
let checker: PythonChecker | undefined;
afterAll(() => checker?.close());
const python = (folder: string) => {
  checker ??= new PythonChecker();
  return checker.check(folder, KEYS);
};

test('has the events of the account and its transactions, in the order of the log, and no others', async () => {
  const { folder, written } = await exported();
  const events = linesIn(folder).map((line) => JSON.parse(line));
  expect(events.map(({ stream, revision }) => `${stream}@${revision}`).join(' ')).toBe(
    'transaction-1@0 transaction-2@0 transaction-3@0 account-7@0 transaction-2@1',
  );
  expect(written).toEqual({ events: 5, size: 8 });
  expect(readdirSync(folder).sort().join(' ')).toBe(
    'checkpoint.txt consistency.json events.jsonl older-checkpoint.txt streams.jsonl',
  );
  expect(linesIn(folder, 'streams.jsonl').map((line) => JSON.parse(line))).toEqual([
    { stream: 'transaction-1', revision: 0, left_out: [] },
    { stream: 'transaction-2', revision: 1, left_out: [] },
    { stream: 'transaction-3', revision: 0, left_out: [] },
    { stream: 'account-7', revision: 0, left_out: [] },
  ]);
  expect(JSON.parse(events[3].data)).toEqual({ account_id: 7, name: 'Größe' });
});

test('can be limited to a range of time, also if the first event of a transaction is older', async () => {
  const { folder } = await exported({ since: '2026-09-04T00:00:00Z' });
  expect(linesIn(folder).map((line) => JSON.parse(line).revision)).toEqual([1]);
  expect(await checkExport(folder, key)).toMatchObject({ events: 1, streams: 4, left_out: 4, faults: [] });
  if (hasPython) expect((await python(folder)).status).toBe(0);
});

test('can have every character in its texts', async () => {
  const { options } = await exported();
  const folder = join(temporaryFolder(), 'export');
  const name = 'A\u2028B\u2029C\u0085D\v\f\r\n"\\\u007fÖ😀';
  const event = { id: crypto.randomUUID(), type: 'AccountRenamed', data: { account_id: 7, name } };
  await options.store.append([
    { stream: 'account-7', expected: 'any', events: [{ ...event, metadata: METADATA as never }] },
  ]);
  await seal(options.store);
  await exportProof({ ...options, folder });
  expect(JSON.parse(JSON.parse(linesIn(folder).at(-1) ?? '').data).name).toBe(name);
  expect((await checkExport(folder, key)).faults).toEqual([]);
  if (hasPython) expect((await python(folder)).status).toBe(0);
});

test.each([
  ['that it made, which is removed', false],
  ['that existed, which is emptied', true],
])('leaves nothing when it fails, in a folder %s', async (_, exists) => {
  const { options } = await exported();
  const parent = temporaryFolder();
  const folder = join(parent, 'of', 'seven');
  if (exists) mkdirSync(folder, { recursive: true });
  const begun: string[] = [];
  const store = new Proxy(options.store, {
    get(of, name) {
      const member = Reflect.get(of, name) as unknown;
      if (name !== 'subscribe') return typeof member === 'function' ? member.bind(of) : member;
      begun.push(...readdirSync(folder));
      throw new Error('the store is gone');
    },
  });
  await expect(exportProof({ ...options, store, folder })).rejects.toThrow('the store is gone');
  expect(begun).toEqual(['events.jsonl.part']);
  expect(readdirSync(parent, { recursive: true })).toEqual(exists ? ['of', 'of/seven'] : []);
});

test('is proven, by the program and by the script for people without it', async () => {
  const { folder } = await exported();
  expect(await checkExport(folder, key)).toEqual({
    ...PROVEN,
    not_proven: [expect.stringContaining('streams.jsonl'), expect.stringContaining('after the checkpoint')],
  });
  const text = '5 events are in the tree of 8 events; of 4 streams none is missing\n';
  if (!hasPython) return;
  const { status, stdout, stderr } = spawnSync('python3', [CHECK, folder, KEYS], { encoding: 'utf8' });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: text, stderr: '' });
});

/** A change of one file, and what both checkers say of it. */
type Forgery = readonly [
  what: string,
  file: string,
  faults: readonly RegExp[],
  change: (text: string) => string,
];

const onLines =
  (change: (lines: string[]) => readonly string[]) =>
  (text: string): string =>
    `${change(text.trimEnd().split('\n')).join('\n')}\n`;
const onLine = (number: number, change: (line: string) => string) =>
  onLines((lines) => lines.map((line, at) => (at === number - 1 ? change(line) : line)));
const [EVENTS, STREAMS] = ['events.jsonl', 'streams.jsonl'];
const LACKS_FIRST = /^events.jsonl lacks transaction-1@0$/;

test.each<Forgery>([
  [
    'an amount changed',
    EVENTS,
    [/^line 1 .*not in the tree: transaction-1@0$/, LACKS_FIRST],
    onLine(1, (line) => line.replace('berta', 'carla')),
  ],
  [
    'an index changed',
    EVENTS,
    [/^line 1 .*not in the tree: transaction-1@0$/, LACKS_FIRST],
    onLine(1, (line) => line.replace('"index":0,', '"index":1,')),
  ],
  [
    'a proof shortened',
    EVENTS,
    [/^line 1 .*not in the tree: transaction-1@0$/, LACKS_FIRST],
    onLine(1, (line) => line.replace(/"proof":\["[^"]+",/, '"proof":[')),
  ],
  [
    'the consistency changed',
    'consistency.json',
    [/begin|continue/],
    (text) => text.replace(/"([A-Za-z0-9+/]{43}=)"/, `"${'A'.repeat(43)}="`),
  ],
  [
    'its last line removed',
    EVENTS,
    [/^events.jsonl lacks transaction-2@1$/],
    onLines((lines) => lines.slice(0, -1)),
  ],
  [
    'a line between removed',
    EVENTS,
    [/^line 4 .*transaction-2@1, but transaction-2@0 is missing before it$/],
    onLines((lines) => lines.filter((_, at) => at !== 1)),
  ],
  [
    'its end cut off within a line',
    EVENTS,
    [/^line 5 of events.jsonl is not an event$/, /^events.jsonl lacks transaction-2@1$/],
    (text) => text.slice(0, -100),
  ],
  [
    'its last line feed cut off',
    EVENTS,
    [/^line 5 of events.jsonl is not an event$/, /^events.jsonl lacks transaction-2@1$/],
    (text) => text.slice(0, -1),
  ],
  [
    'a line repeated',
    EVENTS,
    [/^line 2 .*not in the order of the log: transaction-1@0$/, /^line 2 .*twice/],
    onLines((lines) => [...lines.slice(0, 1), ...lines]),
  ],
  [
    'two lines swapped',
    EVENTS,
    [/^line 2 .*not in the order of the log: transaction-1@0$/],
    onLines(([first = '', second = '', ...more]) => [second, first, ...more]),
  ],
  ['an empty line', EVENTS, [/^line 6 of events.jsonl is not an event$/], (text) => `${text}\n`],
  [
    'an event that it does not name',
    STREAMS,
    [/^line 3 of events.jsonl is transaction-3@0, /],
    onLines((lines) => lines.filter((line) => !line.includes('transaction-3'))),
  ],
  [
    'an event that it says to leave out',
    STREAMS,
    [/^line 3 of events.jsonl is transaction-3@0, /],
    onLine(3, (line) => line.replace('[]', '[0]')),
  ],
  [
    'a stream twice',
    STREAMS,
    [/^line 5 of streams.jsonl repeats transaction-1$/],
    onLines((lines) => [...lines, lines[0] ?? '']),
  ],
  [
    'revisions in another order',
    STREAMS,
    [
      /^line 2 of streams.jsonl is not a stream$/,
      /^line 2 of events.jsonl is transaction-2@0, /,
      /^line 5 .*@1, /,
    ],
    onLine(2, (line) => line.replace('[]', '[1,0]')),
  ],
])('with %s is not proven, and both checkers say where', async (_, file, faults, change) => {
  const { folder } = await exported();
  const before = readFileSync(join(folder, file), 'utf8');
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(join(folder, file), after);
  const expected = faults.map((fault) => expect.stringMatching(fault));
  expect((await checkExport(folder, key)).faults).toEqual(expected);
  if (!hasPython) return;
  const { status, text } = await python(folder);
  expect([status, text.trimEnd().split('\n')]).toEqual([1, expected]);
});

test.each([
  ['another member', '{', '{"account":8,'],
  ['a member twice, the forged one first', '"data":', '"data":"{}","data":'],
  ['a member less', /"id":"[^"]*",/, ''],
  ['its members in another order', /("index":0),("stream":"[^"]*")/, '$2,$1'],
  ['a number as a text', '"index":0', '"index":"0"'],
  ['a number below 0', '"index":0', '"index":-1'],
  ['no object', /.*/, 'null'],
])('whose first line has %s is not proven', async (_, member, forged) => {
  const { folder } = await exported();
  const path = join(folder, EVENTS);
  writeFileSync(path, readFileSync(path, 'utf8').replace(member, forged));
  const faults = ['line 1 of events.jsonl is not an event', 'events.jsonl lacks transaction-1@0'];
  expect((await checkExport(folder, key)).faults).toEqual(faults);
  if (hasPython) expect(await python(folder)).toEqual({ status: 1, text: `${faults.join('\n')}\n` });
});

test('whose checkpoint another key signed is refused', async () => {
  const { folder } = await exported();
  const path = join(folder, 'checkpoint.txt');
  writeFileSync(path, readFileSync(path, 'utf8').replace(/\n8\n/, '\n9\n'));
  await expect(checkExport(folder, key)).rejects.toMatchObject({ code: 'REFUSED' });
  if (hasPython) expect((await python(folder)).status).toBe(1);
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
  const unsealed = exportProof({ ...options, store, folder: temporaryFolder() });
  await expect(unsealed).rejects.toThrow('nothing is sealed');
});
