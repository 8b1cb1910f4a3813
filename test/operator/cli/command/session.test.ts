import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Output } from '../../../../src/operator/cli/command/output.ts';
import { commandLine } from '../../../support/service/command-line.ts';

afterEach(() => void vi.restoreAllMocks());

/** Files of the folder that this process has open. */
function openIn(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      return []; // it was closed meanwhile: the folder is listed by one of them
    }
  });
}

test('a command has closed its stores when it ends, also where it fails', async () => {
  const { fuel } = commandLine({}, { hasStore: false });
  const folder = process.env.FUEL_DATA_DIR ?? '';
  for (const [code, ...args] of [
    [0, 'account', 'open', '7', '--name', 'Seven', '--wait'],
    [0, 'projection', 'status'],
    [1, 'account', 'integration', '8', 'on'],
  ] as const) {
    expect((await fuel(...args)).code).toBe(code);
    expect(openIn(folder)).toEqual([]);
  }
});

test('standard output has the listeners that it had before a secret was written to it', async () => {
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((_text, done: unknown) => {
    (done as () => void)();
    return true;
  });
  const other = (): void => undefined;
  process.stdout.on('error', other);
  const before = process.stdout.listeners('error');
  await new Output(true).secret({ key: 'once' }, '', 'the key is lost');
  expect(process.stdout.listeners('error')).toEqual(before);
  process.stdout.off('error', other);
  expect(write).toHaveBeenCalledWith('{"key":"once"}\n', expect.any(Function));
});

test('a secret that could not be written is reported as lost', async () => {
  vi.spyOn(process.stdout, 'write').mockImplementation((_text, done: unknown) => {
    (done as (error: Error) => void)(new Error('EPIPE'));
    return true;
  });
  const before = process.stdout.listeners('error');
  const lost = new Output(true).secret({}, '', 'the key is lost: issue another one');
  await expect(lost).rejects.toMatchObject({
    code: 'OUTPUT_LOST',
    message: expect.stringContaining('issue another one'),
  });
  process.stdout.removeAllListeners('error');
  for (const listener of before) process.stdout.on('error', listener as () => void);
});

describe('a command that changes something', () => {
  test('is refused where there is no store, and makes none', async () => {
    const { fuel } = commandLine({}, { hasStore: false });
    for (const line of [
      'account integration 7 on',
      'key off abcdefghij',
      'webhook test abcdefghij',
      'delivery redeliver --cancel --key abcdefghij',
      'import void 2026-09-03-1a2b3c4d --reason x',
      'transaction erase 1 --yes --reason x',
      'driver redact 7 --account 7 --reason x',
      'projection rebuild transactions',
      'projection parked retry --all',
      'verify --repair',
      'key rewrap',
    ])
      expect([line, await fuel(...line.split(' '))]).toMatchObject([
        line,
        { code: 1, stdout: '', stderr: expect.stringMatching(/^fuel: There is no store in /) },
      ]);
    expect(existsSync(process.env.FUEL_DATA_DIR ?? '')).toBe(false);
  });

  test.each(['transaction import', 'account apply'])(
    'may begin a store, and does not for a file that cannot be read: fuel %s',
    async (line) => {
      const { fuel, file } = commandLine({}, { hasStore: false });
      const refused = await fuel(...line.split(' '), '/nowhere/file');
      expect([refused.code, existsSync(process.env.FUEL_DATA_DIR ?? '')]).toEqual([1, false]);
      const begun = await fuel(...line.split(' '), file('empty', ''));
      expect([begun.code, begun.stderr]).toEqual([0, expect.stringMatching(/^Created a new store in /)]);
    },
  );

  test('records nothing in a store of another environment; one that only shows it works', async () => {
    const { fuel, eventsOf } = commandLine({}, { hasStore: false });
    await fuel('account', 'open', '7', '--name', 'Seven');
    const before = await eventsOf('operations');
    vi.stubEnv('FUEL_ENVIRONMENT', 'production');
    vi.stubEnv('FUEL_MASTER_KEY', `${'A'.repeat(42)}E=`);
    for (const args of [
      ['account', 'integration', '7', 'on'],
      ['projection', 'rebuild', 'transactions'],
      ['verify', '--repair'],
    ])
      expect(await fuel(...args)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('(STORE_MISMATCH)'),
      });
    expect((await fuel('account', 'list')).code).toBe(0);
    vi.stubEnv('FUEL_ENVIRONMENT', 'staging');
    expect(await eventsOf('operations')).toEqual(before);
    expect(before.map(({ type }) => type)).toEqual(['StoreNamed', 'EnvironmentSet', 'MasterKeyAdded']);
  });
});
