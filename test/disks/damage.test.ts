import {
  chmodSync,
  cpSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { overwrite, pageBytesOf } from '../support/damage.ts';
import { folder, fuel } from '../support/service/commands.ts';
import { confirmed } from '../support/transactions/e2e-samples.ts';
import { copyOf, done, imported, preparedFolder, served } from './data-folder.ts';

vi.setConfig({ testTimeout: 1_200_000 });

const TABLE = new URL('../../docs/operations/disks.md', import.meta.url);
const FILES = ['events', 'transactions', 'deliveries', 'subscriptions', 'control', 'accounts', 'requests'];
/** `older` is the same file in an older copy of the folder; `grown` is that copy's file after it has recorded more. */
const DAMAGES: Readonly<Record<string, (path: string, older: string, grown: string) => void>> = {
  'begins with zeros': (path) => overwrite(path, 0, 100),
  'has zeros in the middle': (path) => overwrite(path, pageBytesOf(path)),
  'is truncated': (path) => truncateSync(path, half(path)),
  'is empty': (path) => truncateSync(path, 0),
  'is missing': (path) => rmSync(path),
  'is older than the others': (path, older) => cpSync(older, path),
  'is older, and was imported into': (path, _, grown) => cpSync(grown, path),
};
/** Returns half of a file's size in whole pages. */
const half = (path: string): number =>
  Math.floor(statSync(path).size / 2 / pageBytesOf(path)) * pageBytesOf(path);
const NEW = [confirmed(2), confirmed(3)];

/** Starts it. Returns if it started, or the code of its error. */
async function started(dataDir: string): Promise<string> {
  const { isReady, ended } = await served(dataDir);
  const { stdout, stderr } = ended;
  if (isReady && ended.code === 0) return 'starts';
  return `refuses: ${/\((STORE_[A-Z]+)\)/.exec(stdout + stderr)?.[1] ?? 'is not ready'}`;
}

/** Returns the checks that found something wrong, with what they say. */
async function doctor(dataDir: string): Promise<Map<string, string>> {
  const { lines } = await fuel(['doctor', '--json'], { dataDir });
  // The consumers and their lag depend on when the test last ran a process and recorded something.
  const wrong = (lines as { ok: boolean; check: string; detail: string }[]).filter(
    ({ ok, check }) => !ok && check !== 'lag' && check !== 'consumers',
  );
  return new Map(wrong.map(({ check, detail }) => [check, detail.replaceAll(dataDir, '')]));
}

/** Makes a copy of the backup whose log is longer now: a lost transaction was imported again, after many others. */
async function grownFrom(backup: string): Promise<string> {
  const dataDir = copyOf(backup);
  for (const name of ['A', 'B', 'C', 'D', 'E', 'F'])
    await done(dataDir, ['account', 'rename', '7', '--name', name]);
  await imported(dataDir, NEW.slice(0, 1));
  for (const end of ['-wal', '-shm']) expect(existsSync(join(dataDir, `events.db${end}`))).toBe(false);
  return dataDir;
}

/** True if it starts, lists everything, and everything agrees. */
async function isWhole(dataDir: string): Promise<boolean> {
  if (!(await started(dataDir)).startsWith('starts')) return false;
  const listed = await fuel(['transaction', 'list', '--account', '7', '--json'], { dataDir });
  const ids = (listed.lines as { id?: number; transaction_id?: number }[]).map(
    (line) => line.id ?? line.transaction_id,
  );
  return ids.toSorted().join() === '1,2,3' && (await fuel(['verify'], { dataDir })).code === 0;
}

it('each damage of each file is reported, and repaired as the table in docs/operations/disks.md says', async () => {
  const data = await preparedFolder();
  const backup = join(folder(), 'backup');
  await done(data, ['store', 'backup', backup]);
  const older = copyOf(data); // a backup leaves out the files that are made again
  cpSync(backup, older, { recursive: true });
  await imported(data, NEW);
  expect(await started(data)).toBe('starts');
  expect(await isWhole(data)).toBe(true);
  const grown = await grownFrom(backup);

  const cures: Readonly<Record<string, (dataDir: string, file: string) => Promise<unknown>>> = {
    'nothing to do': async () => undefined,
    'delete the file': async (dataDir, file) => {
      for (const end of ['', '-wal', '-shm']) rmSync(join(dataDir, file + end), { force: true });
    },
    '`fuel projection rebuild transactions`, import again': async (dataDir) => {
      await fuel(['projection', 'rebuild', 'transactions', '--reason', 'a test'], { dataDir });
      await imported(dataDir, NEW).catch(() => undefined); // fails if the store is destroyed
    },
    'restore the backup, import everything since': async (dataDir) => {
      rmSync(dataDir, { recursive: true });
      cpSync(backup, dataDir, { recursive: true });
      chmodSync(dataDir, 0o700);
      await imported(dataDir, NEW);
    },
  };
  const sound = await doctor(data);
  const rows: string[] = [];
  for (const name of FILES)
    for (const [damage, inflict] of Object.entries(DAMAGES)) {
      const file = `${name}.db`;
      const copy = (): string => {
        const dataDir = copyOf(data);
        for (const end of ['-wal', '-shm']) rmSync(join(dataDir, file + end), { force: true });
        inflict(join(dataDir, file), join(older, file), join(grown, file));
        return dataDir;
      };
      if (name !== 'events' && damage.includes('imported')) continue;
      const said = [...(await doctor(copy()))].filter(([check, detail]) => sound.get(check) !== detail);
      const checks = said.map(([check]) => `\`${check}\``).join(', ') || 'nothing';
      const served = await started(copy());
      let cure = 'none found';
      for (const [what, work] of Object.entries(cures)) {
        const dataDir = copy();
        await work(dataDir, file);
        if (!(await isWhole(dataDir))) continue;
        cure = what;
        break;
      }
      rows.push(`| \`${file}\` | ${damage} | ${served} | ${checks} | ${cure} |`);
    }
  const table = [
    '| File | The file … | `fuel serve` | `fuel doctor` reports | What to do |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n');
  const document = existsSync(TABLE) ? readFileSync(TABLE, 'utf8') : '';
  if (process.env.FUEL_DISKS_WRITE === 'true') {
    const [before = ''] = document.split('| File |');
    writeFileSync(TABLE, `${before}${table}\n`);
  } else expect(document).toContain(table);
});
