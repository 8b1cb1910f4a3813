import { expect, test, vi } from 'vitest';
import { readAccountEvent } from '../../src/accounts/read-account-event.ts';
import { FuelError } from '../../src/base/errors.ts';
import { loadConfig } from '../../src/engines/engines.ts';
import { type ApplyOptions, applyAccounts } from '../../src/operator/apply/apply-accounts.ts';
import { importTransactions } from '../../src/operator/import/import-transactions.ts';
import { projectEvent } from '../../src/records/project-event.ts';
import { readCheckpoint } from '../../src/seals/checkpoint.ts';
import type { Chance } from '../simulation/core/chance.ts';
import { cancelled, confirmed, external, voided } from '../simulation/parts/lines.ts';
import { MemoryLog, openMemoryEventStore } from '../support/engines/memory-log.ts';
import { changedBytes, changedValue, forCases, nastyText } from './cases.ts';

vi.setConfig({ testTimeout: 3_600_000 });

const AUTHOR = { actor: 'ada', command: 'fuzz' };
const NOW_MS = Date.parse('2026-09-15T12:00:00Z');
const clock = { now: () => NOW_MS };
/** The lines of a file. Each is a case. */
const LINES = 20;
const ACCOUNT = {
  account_id: 7,
  name: 'North',
  integration: 'on',
  contacts: ['a@example.com'],
  profiles: [{ profile: 'basic', from: '2026-01-01T00:00:00.000Z', to: null }],
  groups: [{ id: 3, name: 'Depots' }],
  corporates: [{ id: 31, name: 'North Depot', group_id: 3 }],
};
const NOTE = `fuel-integration/5f8bd1b2
1024
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— fuel-integration/5f8bd1b2 Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
`;
const SETTINGS = [
  'FUEL_PORT',
  'FUEL_MASTER_KEY',
  'FUEL_WEBHOOK_RETRY_DELAYS',
  'FUEL_DELIVERY_RETENTION_DAYS',
];

function transactionLine(chance: Chance): object {
  const id = 1 + chance.int(30);
  const made = chance.pick([confirmed, external, voided, cancelled]);
  return made(id, { account_id: 7 });
}

/** Returns a line of a file: a valid one, a changed one, or bytes. */
function lineOf(chance: Chance, valid: object): Buffer {
  const text = Buffer.from(JSON.stringify(chance.is(0.3) ? valid : changedValue(chance, valid)));
  const line = chance.is(0.2) ? changedBytes(chance, text) : text;
  return Buffer.concat([line, Buffer.from('\n')]);
}

function fileOf(chance: Chance, valid: (chance: Chance) => object): AsyncIterable<Buffer> {
  const bytes = Buffer.concat(Array.from({ length: LINES }, () => lineOf(chance, valid(chance))));
  const at = chance.int(bytes.length);
  return (async function* () {
    yield bytes.subarray(0, at);
    yield bytes.subarray(at);
  })();
}

/** Checks that each line is recorded, unchanged or refused with a reason, and that recorded events can be read. */
async function judgeFile(
  work: (store: ReturnType<typeof openMemoryEventStore>, reasons: string[]) => Promise<object>,
  isReadable: (
    event: Awaited<ReturnType<ReturnType<typeof openMemoryEventStore>['readStream']>>[number],
  ) => boolean,
): Promise<number> {
  const log = new MemoryLog();
  const store = openMemoryEventStore(log, clock);
  const reasons: string[] = [];
  const done = await work(store, reasons).catch((error: unknown) => {
    if (error instanceof FuelError && error.message.startsWith('the input is ')) return undefined;
    throw error;
  });
  if (done === undefined) return 0;
  const counts = Object.values(done) as number[];
  const lines = counts.reduce((sum, count) => sum + count, 0);
  if (lines < 1) throw new Error(`no line was counted: ${counts}`);
  if (reasons.length !== counts.at(-1))
    throw new Error(`${counts.at(-1)} refused, and ${reasons.length} reasons`);
  const bad = reasons.find((reason) => reason.trim() === '' || /TypeError|undefined|\[object/.test(reason));
  if (bad !== undefined) throw new Error(`no reason: ${bad}`);
  for (const { stream } of log.after(0))
    for (const event of await store.readStream(stream))
      if (!isReadable(event)) throw new Error(`recorded, and cannot be read: ${JSON.stringify(event)}`);
  await store.close();
  return log.head;
}

test('each line of an import is recorded as it can be read, or refused with a reason', async () => {
  let recorded = 0;
  await forCases(
    'files',
    async (chance) => {
      recorded += await judgeFile(
        (store, reasons) =>
          importTransactions({
            store,
            clock,
            author: AUTHOR,
            input: fileOf(chance, transactionLine),
            onRefused: (_line, reason) => void reasons.push(reason),
            onProgress: () => undefined,
            signal: new AbortController().signal,
          }),
        (event) => !('parkReason' in projectEvent(event)),
      );
    },
    { inputs: LINES },
  );
  expect(recorded).toBeGreaterThan(0);
});

test('each line of an account file is applied as it can be read, or refused with a reason', async () => {
  let recorded = 0;
  await forCases(
    'files',
    async (chance) => {
      const options: Omit<ApplyOptions, 'store' | 'onRefused'> = {
        ...{
          clock,
          author: AUTHOR,
          input: fileOf(chance, () => ({ ...ACCOUNT, account_id: 1 + chance.int(5) })),
        },
        onProgress: () => undefined,
        signal: new AbortController().signal,
      };
      recorded += await judgeFile(
        (store, reasons) =>
          applyAccounts({ ...options, store, onRefused: (_line, reason) => void reasons.push(reason) }),
        (event) => readAccountEvent(event).ok,
      );
    },
    { inputs: LINES },
  );
  expect(recorded).toBeGreaterThan(0);
});

test('a checkpoint is one, or is none; a setting is taken, or refused with its name', async () => {
  let taken = 0;
  await forCases('files', async (chance) => {
    const note = changedBytes(chance, Buffer.from(NOTE)).toString('utf8');
    const read = readCheckpoint(note);
    if (read !== undefined && !(Number.isSafeInteger(read.size) && read.size >= 0))
      throw new Error(`a checkpoint of ${read.size}: ${note}`);
    const name = chance.pick(SETTINGS);
    try {
      loadConfig(
        {
          FUEL_DATA_DIR: '/tmp',
          FUEL_MASTER_KEY: Buffer.alloc(32).toString('base64'),
          [name]: nastyText(chance),
        },
        'command',
      );
      taken++;
    } catch (error) {
      if (!(error instanceof FuelError) || !error.message.includes(name)) throw error;
    }
  });
  expect(taken).toBeGreaterThan(0);
});
