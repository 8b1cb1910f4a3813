import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { loadConfig } from '../../../../src/engines/engines.ts';
import { storeIdentity } from '../../../../src/event-store/store-identity.ts';
import { openSigner } from '../../../../src/seals/seal-key.ts';
import { lastSeal } from '../../../../src/seals/seals.ts';
import { opened } from '../../../support/accounts/account-samples.ts';
import { seal } from '../../../support/seals/sealing.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { confirmed } from '../../../support/transactions/e2e-samples.ts';

const VOIDED = {
  transaction_id: 1,
  account_id: 7,
  voided_at: '2026-09-04T10:00:00.000Z',
  reason: 'Sam Field left the firm',
};

/** Account 7 and transaction 1, sealed under the key of the data directory. */
async function sealed() {
  const cli = commandLine();
  await cli.account(opened());
  await cli.append('transaction-1', [confirmed(1)]);
  const note = await cli.withEngines(async (engines) => {
    const store = engines.store();
    const config = loadConfig(process.env, 'command');
    const signer = openSigner(await storeIdentity(store, systemClock), config);
    if (signer === undefined) throw new Error('there is no key');
    await seal(store, { by: signer });
    return (await lastSeal(store))?.note ?? '';
  });
  const checkpoint = join(temporaryFolder(), 'checkpoint.txt');
  writeFileSync(checkpoint, note);
  return { ...cli, checkpoint };
}

test('audit verify proves the log, says so on record, and takes a checkpoint from a file', async () => {
  const { fuel, eventsOf, checkpoint } = await sealed();
  const { code, stdout } = await fuel('audit', 'verify', '--checkpoint', checkpoint);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^Size +\d+\nRoot .*\nSeals +1\nProven to +\d+\n/),
  ]);
  expect((await eventsOf('operations')).at(-1)?.type).toBe('LogProven');
  const json = (await fuel('audit', 'verify', '--json')).json;
  expect(json).toMatchObject({
    ...{
      size: expect.any(Number),
      root: expect.stringMatching(/=$/),
      seals: 1,
      proven_to: expect.any(Number),
    },
    faults: 0,
    gaps: 0,
    erased: [],
  });
  expect(json.size).toBeGreaterThan(json.proven_to);
});

test('audit verify names what was forged, and exits 1; nothing is on record', async () => {
  const { fuel, eventsOf } = await sealed();
  const db = new DatabaseSync(join(process.env.FUEL_DATA_DIR ?? '', 'events.db'));
  for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all())
    db.exec(`DROP TRIGGER ${name}`);
  db.exec(
    `UPDATE events SET metadata = replace(metadata, '"actor":"', '"actor":"x') WHERE stream = 'transaction-1'`,
  );
  db.close();
  for (const option of [[], ['--json']]) {
    const found = await fuel('audit', 'verify', ...option);
    expect(found.code).toBe(1);
    expect(found.stderr).toMatch(/^transaction-1@0 is not what was sealed/m);
    if (option.length > 0)
      expect(found.json).toMatchObject({ faults: 1, fault: { place: 'transaction-1@0' } });
  }
  expect((await eventsOf('operations')).map(({ type }) => type)).not.toContain('LogProven');
});

test('audit verify refuses a checkpoint that another key signed, and a key that is none', async () => {
  const { fuel, checkpoint } = await sealed();
  writeFileSync(checkpoint, readFileSync(checkpoint, 'utf8').replace(/\n\d+\n/, '\n999\n'));
  for (const args of [
    ['--checkpoint', checkpoint],
    ['--checkpoint', '/none'],
    ['--key', 'none'],
  ])
    expect(await fuel('audit', 'verify', ...args)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^fuel: /),
    });
});

test('audit verify without a key makes none, and says what to restore', async () => {
  const { fuel } = await sealed();
  const file = join(process.env.FUEL_DATA_DIR ?? '', 'seal.key');
  const key = readFileSync(file);
  rmSync(file);
  for (const args of [['verify'], ['export', '--account', '7', '--output', join(temporaryFolder(), 'out')]]) {
    const { code, stderr } = await fuel('audit', ...args);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Restore ${file}, set FUEL_SEAL_KEY`)]);
    expect(existsSync(file)).toBe(false);
  }
  writeFileSync(file, key, { mode: 0o600 });
  expect((await fuel('audit', 'verify')).code).toBe(0);
});

test('audit as text names a driver, and says why a transaction was voided, only with --personal', async () => {
  const { fuel, append } = commandLine();
  await append('transaction-1', [confirmed(1), { type: 'TransactionVoided', data: VOIDED }]);
  await append('account-7', [opened()]);
  for (const args of [['audit'], ['transaction', 'show', '1']]) {
    const { stdout } = await fuel(...args);
    expect(stdout).not.toMatch(/Sam Field|15550100|left the firm/);
    expect(stdout).toContain('"driver":"hidden: --personal"');
    expect(stdout).toContain('"reason":"hidden: --personal"');
    expect((await fuel(...args, '--personal')).stdout).toMatch(/Sam Field.*15550100.*left the firm/s);
    expect((await fuel(...args, '--json')).stdout).toMatch(/Sam Field.*15550100.*left the firm/s);
  }
});

test('audit export is what audit check proves, with nothing but the key', async () => {
  const { fuel, checkpoint } = await sealed();
  const folder = join(temporaryFolder(), 'export');
  const args = ['--account', '7', '--output', folder, '--checkpoint', checkpoint];
  const { code, json } = await fuel('audit', 'export', ...args, '--json');
  expect([code, json]).toEqual([0, expect.objectContaining({ events: 2, output: folder })]);
  expect(await fuel('audit', 'check', folder, '--key', json.key, '--json')).toMatchObject({
    code: 0,
    json: { events: 2, faults: [] },
  });
  const events = join(folder, 'events.jsonl');
  writeFileSync(events, readFileSync(events, 'utf8').replace('"proof":["', '"proof":["A'));
  expect((await fuel('audit', 'check', folder, '--key', json.key)).code).toBe(1);
  expect(await fuel('audit', 'export', ...args)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('not empty'),
  });
});

test('audit check refuses a folder that is not an export', async () => {
  const { fuel, done } = await sealed();
  const folder = join(temporaryFolder(), 'export');
  const { key } = await done('audit', 'export', '--account', '7', '--output', folder);
  rmSync(join(folder, 'events.jsonl'));
  const { code, stderr } = await fuel('audit', 'check', folder, '--key', key);
  expect([code, stderr]).toEqual([
    1,
    `fuel: ${folder} is not an export, since it has no events.jsonl. Name a folder that \`fuel audit export\` made\n`,
  ]);
});

test('audit that is interrupted does not say that an account is unknown', async () => {
  const { fuel, hasServed } = await sealed();
  await hasServed();
  const { once } = process;
  const interrupting = vi.spyOn(process, 'once').mockImplementation((event, listener) => {
    once.call(process, event, listener);
    if (event === 'SIGINT') process.emit('SIGINT');
    return process;
  });
  const { code, stdout, stderr } = await fuel('audit', '--account', '9');
  interrupting.mockRestore();
  expect([code, stdout, stderr]).toEqual([1, '', 'fuel: Interrupted\n']);
});
