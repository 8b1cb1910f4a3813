import { readdirSync, readlinkSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
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
