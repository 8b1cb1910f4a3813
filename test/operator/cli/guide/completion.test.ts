import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { beforeAll, describe, expect, test } from 'vitest';
import { offersFor } from '../../../../src/operator/cli/guide/completion.ts';
import { createProgram } from '../../../../src/operator/cli/program.ts';
import { folder } from '../../../support/service/commands.ts';
import { runInProcess } from '../../../support/service/in-process.ts';

/** What is typed, and what the shell offers then; `…` stands for further words. */
const TYPED: readonly (readonly [typed: readonly string[], offered: readonly string[]])[] = [
  [['acc'], ['account']],
  [['account', 'ap'], ['apply']],
  [
    ['account', 'integration', '7', ''],
    ['on', 'off'],
  ],
  [['account', 'integration', '7', 'on', ''], []],
  [['account', 'open', '--actor', 'account', '7', '--n'], ['--name']],
  [['account', 'apply', '--d'], ['--dry-run']],
  [['account', 'list', ''], []],
  [['help', 'account', 'ex'], ['export']],
  [['help', 'account', 'export', ''], []],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
  [['completion', 'bash', ''], []],
  [
    ['projection', 'parked', ''],
    ['show', 'retry', 'skip'],
  ],
  [['serve', '--role', 'a'], ['api']],
  [
    ['serve', '--role', 'api', '--role', ''],
    ['api', 'projector', 'webhooks', 'notices'],
  ],
  [['key', 'show', 'list', ''], []],
  [
    ['delivery', 'list', '--state', ''],
    ['pending', 'held', 'delivered', 'failed', 'withdrawn'],
  ],
  [['transaction', 'list', '--status', 'E'], ['EXTERNAL']],
  [['store', 'backup', 'accounts.j'], ['accounts.jsonl']],
  [['account', 'apply', 'accounts.j'], ['accounts.jsonl']],
  [['account', 'apply', 'accounts.jsonl', ''], []],
];

const scripts: Record<string, string> = {};
const place = folder();
/** The scripts ask the `fuel` that the shell finds. */
const IN_PLACE = {
  cwd: place,
  encoding: 'utf8' as const,
  env: { ...process.env, PATH: `${join(import.meta.dirname, '../../../../bin')}:${process.env.PATH}` },
};

const missing = ['fish', 'zsh'].filter((shell) => !has(shell));

beforeAll(async () => {
  if (missing.length > 0)
    process.stdout.write(`completion not tested here in ${missing.join(', ')}: not installed\n`);
  writeFileSync(join(place, 'accounts.jsonl'), '');
  for (const shell of ['bash', 'zsh', 'fish']) {
    scripts[shell] = (await runInProcess(['completion', shell])).stdout;
    writeFileSync(join(place, `fuel.${shell}`), scripts[shell]);
  }
});

function has(shell: string): boolean {
  try {
    execFileSync(shell, ['-c', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe('bash completes fuel', () => {
  const offered = (...typed: readonly string[]) => {
    const script = `source fuel.bash
      COMP_WORDS=(fuel "$@") COMP_CWORD=$# COMPREPLY=()
      "$(complete -p fuel | sed 's/.*-F \\([^ ]*\\) .*/\\1/')"
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const text = execFileSync('bash', ['--norc', '-c', script, 'bash', ...typed], IN_PLACE);
    return text.split('\n').filter((word) => word !== '');
  };

  test.each(TYPED)('after %j with %j', (typed, words) => {
    expect(offered(...typed).toSorted()).toEqual([...words].sort());
  });

  test('with an equals sign before an option’s value', () => {
    expect(offered('serve', '--role', '=')).toContain('projector');
    expect(offered('serve', '--role', '=', 'proj')).toEqual(['projector']);
    expect(offered('account', 'list', '--json', '')).toEqual([]);
  });
});

if (!missing.includes('fish'))
  describe('fish completes fuel', () => {
    test.each(TYPED)('after %j with %j', (typed, words) => {
      const script = `source fuel.fish; complete -C 'fuel ${typed.join(' ')}'`;
      const text = execFileSync('fish', ['--no-config', '-c', script], IN_PLACE);
      const offered = text.split('\n').map((line) => line.split('\t')[0]);
      expect(offered.filter((word) => word !== '').toSorted()).toEqual([...words].sort());
    });
  });

if (!missing.includes('zsh'))
  describe('zsh completes fuel', () => {
    test.each(TYPED)('after %j with %j', (typed, words) => {
      // The functions that need a terminal print instead what they would offer.
      const script = `compdef() {}
      _describe() { print -rl -- \${\${(P@)2}%%:*}; }
      compadd() { shift; print -rl -- "$@"; }
      _files() { print -rl -- *(N); }
      source fuel.zsh
      words=(fuel "$@") CURRENT=$(($# + 1))
      _fuel`;
      const text = execFileSync('zsh', ['-f', '-c', script, 'zsh', ...typed], IN_PLACE);
      const begun = typed.at(-1) ?? '';
      const offered = text.split('\n').filter((word) => word !== '' && word.startsWith(begun));
      expect(offered.toSorted()).toEqual([...words].sort());
    });
  });

test('every noun, every verb and every option there is is offered', () => {
  const program = createProgram();
  const offered = (...typed: readonly string[]) => offersFor(program, typed).map(({ word }) => word);
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

describe('the scripts', () => {
  test('are not there for another shell', async () => {
    const { code, stdout, stderr } = await runInProcess(['completion', 'tcsh']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/Allowed choices are bash, zsh, fish/);
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
    [['acount'], "error: unknown command 'acount'\n(Did you mean account?)\n"],
    [['account', 'aply'], "error: unknown command 'aply'\n(Did you mean apply?)\n"],
    [['account', 'somersault'], "error: unknown command 'somersault'\n"],
    [['account', 'apply', '7'], "error: unknown command '7'\n"],
  ])('is wrong usage for a name that is not known: %j', async (names, message) => {
    const { code, stdout, stderr } = await runInProcess(['help', ...names]);
    expect([code, stdout, stderr]).toEqual([2, '', message]);
  });
});

describe('an option that is not known', () => {
  test.each([
    [['account', 'list', '--jsn'], '(Did you mean --json?)'],
    [['account', 'apply', 'x', '--dryrun'], '(Did you mean --dry-run?)'],
    [['projection', 'rebuild', 'transactions', '--join'], undefined],
    [['projection', 'rebuild', 'transactions', '--workers', '4'], undefined],
  ])('is answered with one of a near name, if there is any: fuel %j', async (args, suggestion) => {
    const { code, stderr } = await runInProcess(args);
    expect([code, stderr.split('\n')[1] || undefined]).toEqual([2, suggestion]);
  });
});

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

function namesOf(command: Command): string[] {
  return command.parent === null ? [] : [...namesOf(command.parent), command.name()];
}
