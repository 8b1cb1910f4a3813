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
    ['accounts', 'view', 'deliveries'],
  ],
  [
    ['projection', 'rebuild', ''],
    ['accounts', 'transactions'],
  ],
  [
    ['key', 'driver-mobile', 'abcdefghij', ''],
    ['on', 'off'],
  ],
])('the words that an argument can be are offered: %j', (typed, words) => {
  expect(offersFor(createProgram(), typed)).toEqual(words);
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
});

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

function namesOf(command: Command): string[] {
  return command.parent === null ? [] : [...namesOf(command.parent), command.name()];
}
