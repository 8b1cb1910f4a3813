import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { folder } from '../../../support/service/commands.ts';
import { runInProcess } from '../../../support/service/in-process.ts';

/** The words typed, and those that the shell offers then; `…` stands for further words. */
const TYPED: readonly (readonly [typed: readonly string[], offered: readonly string[]])[] = [
  [['acc'], ['account']],
  [['account', 'ap'], ['apply']],
  [
    ['account', 'integration', '7', ''],
    ['on', 'off'],
  ],
  [['account', 'integration', '7', 'on', ''], []],
  [['webhook', 'rate', 'a1b2c3d4e5', ''], ['off']],
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
    ['retry', 'skip'],
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

const place = folder();
/** The scripts ask the `fuel` that the shell finds. */
const IN_PLACE = {
  cwd: place,
  encoding: 'utf8' as const,
  env: { ...process.env, PATH: `${join(import.meta.dirname, '../../../../bin')}:${process.env.PATH}` },
};

beforeAll(async () => {
  for (const shell of ['zsh', 'fish'].filter((each) => !has(each)))
    process.stdout.write(`completion not tested here in ${shell}: not installed\n`);
  writeFileSync(join(place, 'accounts.jsonl'), '');
  for (const shell of ['bash', 'zsh', 'fish'])
    writeFileSync(join(place, `fuel.${shell}`), (await runInProcess(['completion', shell])).stdout);
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

describe.runIf(has('zsh'))('zsh completes fuel', () => {
  test.each(TYPED)('after %j with %j', (typed, words) => {
    // The functions that need a terminal print instead what they would offer.
    const script = `compdef() {}
      compadd() { print -rl -- \${(P)2}; }
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

describe.runIf(has('fish'))('fish completes fuel', () => {
  test.each(TYPED)('after %j with %j', (typed, words) => {
    const line = ['fuel', ...typed].join(' ');
    const script = 'source fuel.fish; complete -C $argv[1]';
    const text = execFileSync('fish', ['--no-config', '-c', script, line], IN_PLACE);
    const offered = text.split('\n').filter((word) => word !== '');
    expect(offered.toSorted()).toEqual([...words].sort());
  });
});
