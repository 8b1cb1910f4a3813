import type { CommandUnknownOpts as Command } from '@commander-js/extra-typings';
import { describe, expect, test } from 'vitest';
import { offersFor } from '../../../../src/operator/cli/guide/completion.ts';
import { createProgram } from '../../../../src/operator/cli/program.ts';
import { runInProcess } from '../../../support/service/in-process.ts';

test('every noun, every verb and every option there is is offered', () => {
  const program = createProgram();
  const offered = (...typed: readonly string[]) => offersFor(program, typed);
  for (const command of everyCommand(program)) {
    const names = namesOf(command);
    if (names[0] === 'help') continue;
    const options = command.options.map(({ long }) => long);
    expect([names, offered(...names, '--')]).toEqual([names, [...options, '--help']]);
    if (command.commands.length === 0) continue;
    const verbs = command.commands.map((sub) => sub.name());
    expect(offered(...names, '')).toEqual(verbs);
    expect(offered('help', ...names, '')).toEqual(verbs);
  }
});

test.each([
  [['transaction', 'erase', '--file', '']],
  [['audit', 'verify', '--checkpoint', '']],
  [['audit', 'export', '--output', '']],
  [['account', 'apply', '']],
])('file names are offered where one is asked for: %j', (typed) => {
  expect(offersFor(createProgram(), typed)).toEqual(['<file>']);
});

test.each([
  [
    ['verify', ''],
    ['view', 'deliveries'],
  ],
  [['projection', 'rebuild', ''], ['transactions']],
  [
    ['key', 'driver-mobile', 'abcdefghij', ''],
    ['on', 'off'],
  ],
])('the words that an argument can be are offered: %j', (typed, words) => {
  expect(offersFor(createProgram(), typed)).toEqual(words);
});

test.each([[['nonsense', '--help']], [['account', 'nonsense', '--help']], [['audit', 'nonsense', '--help']]])(
  'help below an unknown name is wrong usage: fuel %j',
  async (args) => {
    const { code, stdout, stderr } = await runInProcess(args);
    expect([code, stdout, stderr]).toEqual([2, '', "error: unknown command 'nonsense'\n"]);
  },
);

test('an unknown option is named before a missing one', async () => {
  const list = (...args: readonly string[]) => runInProcess(['transaction', 'list', ...args]);
  expect(await list('--acount', '7')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^error: unknown option '--acount'\n\(Did you mean --account\?\)/),
  });
  expect(await list()).toMatchObject({
    code: 2,
    stderr: "error: required option '--account <id>' not specified\n",
  });
});

describe('the scripts', () => {
  test('are not there for another shell', async () => {
    const { code, stdout, stderr } = await runInProcess(['completion', 'tcsh']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/Allowed choices are bash, zsh, fish\./);
  });
});

describe('fuel help', () => {
  test('prints what --help prints, at every level', async () => {
    for (const names of [
      [],
      ['account'],
      ['account', 'apply'],
      ['projection', 'parked', 'retry'],
      ['serve'],
      ['help'],
    ]) {
      const { code, stdout } = await runInProcess(['help', ...names]);
      expect([names, code, stdout]).toEqual([names, 0, (await runInProcess([...names, '--help'])).stdout]);
      expect(stdout).toMatch(/^Usage: fuel/);
    }
  });

  test.each([
    [['acount'], "error: unknown command 'acount'\n"],
    [['account', 'aply'], "error: unknown command 'aply'\n"],
    [['account', 'apply', '7'], "error: unknown command '7'\n"],
  ])('is wrong usage for a name that is not known: %j', async (names, message) => {
    const { code, stdout, stderr } = await runInProcess(['help', ...names]);
    expect([code, stdout, stderr]).toEqual([2, '', message]);
  });
});

test.each([
  ['acount', 'list'],
  ['account', 'lst'],
  ['account', 'list', '--jsn'],
])('a misspelt command or option is answered with one of a near name: fuel %s %s %s', async (...args) => {
  const { code, stderr } = await runInProcess(args);
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/^error: .*\n\(Did you mean (account|list|--json)\?\)$/m),
  ]);
});

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

function namesOf(command: Command): string[] {
  return command.parent === null ? [] : [...namesOf(command.parent), command.name()];
}
