import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Random } from '../../src/customers/sample/random.ts';
import type { CommandResult } from '../support/service/command-result.ts';
import { type Env, folder, fuel, startFuel } from '../support/service/commands.ts';
import { confirmed, linesOf } from '../support/transactions/e2e-samples.ts';
import { ERRORS, FailingDisk, type Failure } from './failing-disk.ts';

vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 120_000 });

/** Of all tests together; each call in turn takes about an hour. */
const SECONDS = Number(process.env.FUEL_DISKS_SECONDS ?? 40);
const SEED = Number(process.env.FUEL_DISKS_SEED ?? 1);
/** A process that has a signal to end for so long hangs. */
const ENDS_WITHIN_MS = 30_000;
const FAULT = /TypeError|RangeError|ReferenceError|\n\s+at .*\(?(node:|file:|\/)/;
const ACCOUNT = ['account', 'show', '7', '--json'];

interface Command {
  readonly args: readonly string[];
  readonly stdin?: string;
  /** What is there once it has ended with 0, on a healthy disk. */
  readonly isDone: (dataDir: string) => Promise<boolean>;
}

const given = async (dataDir: string, args: readonly string[], env: Env = {}): Promise<CommandResult> =>
  fuel(args, { dataDir, env });
const accountHas = (wanted: (account: Record<string, unknown[]>) => boolean) => async (dataDir: string) => {
  const { code, json } = await given(dataDir, ACCOUNT);
  return code === 0 && wanted(json);
};
const has = (id: number) => async (dataDir: string) =>
  (await given(dataDir, ['transaction', 'show', String(id), '--json'])).code === 0;

const COMMANDS: Readonly<Record<string, Command>> = {
  'key issue': {
    args: ['key', 'issue', '7', '--json'],
    isDone: accountHas(({ keys }) => keys?.length === 2),
  },
  'account rename': {
    args: ['account', 'rename', '7', '--name', 'Other', '--json'],
    isDone: accountHas(({ name }) => String(name) === 'Other'),
  },
  'transaction import': {
    args: ['transaction', 'import', '-', '--json'],
    stdin: linesOf([confirmed(2), confirmed(3)]),
    isDone: has(3),
  },
  'transaction erase': {
    args: ['transaction', 'erase', '1', '--reason', 'asked', '--yes', '--json'],
    isDone: async (dataDir) => !(await has(1)(dataDir)),
  },
  'projection rebuild': {
    args: ['projection', 'rebuild', 'transactions', '--json'],
    isDone: async (dataDir) => (await given(dataDir, ['verify'])).code === 0,
  },
  verify: { args: ['verify'], isDone: async () => true },
};

const disk = FailingDisk.make();
if (disk === undefined) process.stdout.write('not tested here: a failing disk (needs a C compiler)\n');

/** Which calls fail, in no order; as many as there is time for. */
function* failures(calls: number, random: Random): Generator<Failure> {
  const left = Array.from({ length: calls }, (_, index) => index + 1);
  while (left.length > 0) {
    const [at = 1] = left.splice(random.between([0, left.length - 1]), 1);
    const names = Object.keys(ERRORS) as (keyof typeof ERRORS)[];
    yield { at, error: names[random.between([0, names.length - 1])] ?? 'EIO', goesOn: random.chance(0.3) };
  }
}

describe.runIf(disk !== undefined)('a disk that fails at any call', () => {
  const failing = disk as FailingDisk;
  const prepared = join(folder(), 'data');
  const copied = (): string => {
    const dataDir = join(folder(), 'data');
    cpSync(prepared, dataDir, { recursive: true });
    return dataDir;
  };
  /** A start, up to its being ready or its end, and the stop. */
  const served = async (dataDir: string, env: Env = {}): Promise<CommandResult> => {
    const command = startFuel(['serve'], { dataDir, env });
    const isUp = async (): Promise<void> => {
      while (!command.stdout().includes('"msg":"projector is active"')) await sleep(20);
    };
    await Promise.race([command.result, isUp(), sleep(4_000)]);
    command.child.kill('SIGTERM');
    const late = sleep(ENDS_WITHIN_MS).then(() => command.child.kill('SIGKILL'));
    return Promise.race([command.result, late.then(() => command.result)]);
  };

  beforeAll(async () => {
    for (const args of [
      ['account', 'open', '7', '--name', 'Seven'],
      ['key', 'issue', '7'],
    ])
      expect((await given(prepared, args)).code).toBe(0);
    const one = { dataDir: prepared, stdin: linesOf([confirmed(1)]) };
    expect((await fuel(['transaction', 'import', '-'], one)).code).toBe(0);
    expect((await served(prepared)).code).toBe(0);
  });

  it.each(Object.entries(COMMANDS))(
    '%s is done or says why not, and is done when it is repeated',
    async (name, command) => {
      const { args, stdin, isDone } = command;
      const first = copied();
      const run = (dataDir: string, env: Env): Promise<CommandResult> =>
        startFuel(args, { dataDir, env, stdin }).result; // a process of its own
      expect(await run(first, failing.env(first))).toMatchObject({ code: 0 });
      const { calls } = failing;
      expect(calls).toBeGreaterThan(10);
      const untilMs = performance.now() + (SECONDS * 1_000) / (Object.keys(COMMANDS).length + 1);
      let tried = 0;
      for (const failure of failures(calls, new Random(SEED))) {
        if (performance.now() > untilMs) break;
        tried += 1;
        const dataDir = copied();
        const { code, stdout, stderr } = await run(dataDir, failing.env(dataDir, failure));
        const what = { name, ...failure, code, stderr: stderr.slice(0, 2_000) };
        if (FAULT.test(stdout + stderr) || (code !== 0 && stderr === ''))
          throw new Error(JSON.stringify(what));
        if (code === 0 && !(await isDone(dataDir)))
          throw new Error(`it said it was done: ${JSON.stringify(what)}`);
        const again = await run(dataDir, {});
        const isKnown = again.code === 0 || /already|erased|there is no transaction/.test(again.stderr);
        expect({ what, again: again.stderr, isKnown }).toMatchObject({ isKnown: true });
        expect({ what, isDone: (await isDone(dataDir)) || name === 'key issue' }).toEqual({
          what,
          isDone: true,
        });
        expect({ what, one: await has(1)(dataDir) }).toEqual({ what, one: name !== 'transaction erase' });
      }
      console.log(`${name}: ${tried} of ${calls} calls failed`);
    },
  );

  it('a service ends in order or goes on, says why, and starts again', async () => {
    const first = copied();
    expect(await served(first, failing.env(first))).toMatchObject({ code: 0 });
    const { calls } = failing;
    expect(calls).toBeGreaterThan(10);
    const untilMs = performance.now() + (SECONDS * 1_000) / (Object.keys(COMMANDS).length + 1);
    let tried = 0;
    for (const failure of failures(calls, new Random(SEED))) {
      if (performance.now() > untilMs) break;
      tried += 1;
      const dataDir = copied();
      const { code, stdout, stderr } = await served(dataDir, failing.env(dataDir, failure));
      const what = { ...failure, code, stderr: stderr.slice(0, 500) };
      const faults = stdout.split('\n').filter((line) => /TypeError|RangeError|ReferenceError/.test(line));
      expect({ what, faults }).toEqual({ what, faults: [] });
      expect([0, 1]).toContain(code);
      expect({ what, again: await served(dataDir) }).toMatchObject({ again: { code: 0 } });
      const { stdout: found } = await given(dataDir, ['doctor', '--json']);
      expect({ what, isDamaged: /is damaged/.test(found) }).toEqual({ what, isDamaged: false });
      expect({ what, one: await has(1)(dataDir) }).toEqual({ what, one: true });
    }
    console.log(`serve: ${tried} of ${calls} calls failed`);
  });
});
