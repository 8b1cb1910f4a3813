import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Random } from '../../src/customers/sample/random.ts';
import type { CommandResult } from '../support/service/command-result.ts';
import { type Env, fuel, startFuel } from '../support/service/commands.ts';
import { confirmed, linesOf } from '../support/transactions/e2e-samples.ts';
import { copyOf, preparedFolder, served } from './data-folder.ts';
import { ERRORS, FailingDisk, type Failure } from './failing-disk.ts';

vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 120_000 });

/** The time for all tests together. Trying every call takes about an hour. */
const SECONDS = Number(process.env.FUEL_DISKS_SECONDS ?? 40);
const SEED = Number(process.env.FUEL_DISKS_SEED ?? 1);
/** The time to become ready, which it may never be on a failing disk. */
const READY_WITHIN_MS = 4_000;
const FAULT = /TypeError|RangeError|ReferenceError|\n\s+at .*\(?(node:|file:|\/)/;
const ACCOUNT = ['account', 'show', '7', '--json'];

interface Command {
  readonly args: readonly string[];
  readonly stdin?: string;
  /** Checks, on a healthy disk, that the work is done after it has ended with 0. */
  readonly isDone: (dataDir: string) => Promise<boolean>;
}

const given = (dataDir: string, args: readonly string[]): Promise<CommandResult> => fuel(args, { dataDir });
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

const runService = async (dataDir: string, env?: Env): Promise<CommandResult> =>
  (await served(dataDir, env, READY_WITHIN_MS)).ended;

const disk = FailingDisk.make();
if (disk === undefined) process.stdout.write('not tested here: a failing disk (needs a C compiler)\n');

/** Yields failures of random calls, as many as there is time for. */
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
  let prepared = '';

  /** Runs it on a copy for each failing call, as long as there is time, and judges the result. */
  const failingInTurn = async (
    name: string,
    run: (dataDir: string, env: Env) => Promise<CommandResult>,
    judge: (dataDir: string, result: CommandResult, what: object) => Promise<void>,
  ): Promise<void> => {
    const first = copyOf(prepared);
    expect(await run(first, failing.env(first))).toMatchObject({ code: 0 });
    const { calls } = failing;
    expect(calls).toBeGreaterThan(10);
    const untilMs = performance.now() + (SECONDS * 1_000) / (Object.keys(COMMANDS).length + 1);
    let tried = 0;
    for (const failure of failures(calls, new Random(SEED))) {
      if (performance.now() > untilMs) break;
      tried += 1;
      const dataDir = copyOf(prepared);
      const result = await run(dataDir, failing.env(dataDir, failure));
      await judge(dataDir, result, {
        name,
        ...failure,
        code: result.code,
        stderr: result.stderr.slice(0, 2_000),
      });
    }
    console.log(`${name}: ${tried} of ${calls} calls failed`);
  };

  beforeAll(async () => {
    prepared = await preparedFolder();
  });

  it.each(Object.entries(COMMANDS))(
    '%s is done or says why not, and is done when it is repeated',
    async (name, { args, stdin, isDone }) => {
      const run = (dataDir: string, env: Env): Promise<CommandResult> =>
        startFuel(args, { dataDir, env, stdin }).result; // in a separate process
      await failingInTurn(name, run, async (dataDir, { code, stdout, stderr }, what) => {
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
      });
    },
  );

  it('a service ends in order or goes on, says why, and starts again', () =>
    failingInTurn('serve', runService, async (dataDir, { code, stdout }, what) => {
      const faults = stdout.split('\n').filter((line) => /TypeError|RangeError|ReferenceError/.test(line));
      expect({ what, faults }).toEqual({ what, faults: [] });
      expect([0, 1]).toContain(code);
      expect({ what, again: await runService(dataDir) }).toMatchObject({ again: { code: 0 } });
      const { stdout: found } = await given(dataDir, ['doctor', '--json']);
      expect({ what, isDamaged: /is damaged/.test(found) }).toEqual({ what, isDamaged: false });
      expect({ what, one: await has(1)(dataDir) }).toEqual({ what, one: true });
    }));
});
