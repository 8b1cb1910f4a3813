import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { keyIssued, opened } from '../../../support/accounts/account-samples.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { runInProcess } from '../../../support/service/in-process.ts';

const NORTH = {
  account_id: 7,
  name: 'North Haulage',
  integration: 'on',
  contacts: ['it@north.example'],
  profiles: [{ profile: 'basic', from: '2026-01-01T00:00:00.000Z', to: null }],
  groups: [{ id: 3, name: 'Depots' }],
  corporates: [{ id: 31, name: 'North \u202eDepot\u009b', group_id: 3 }],
};
const EIGHT = {
  account_id: 8,
  name: 'Eight',
  integration: 'off',
  contacts: [],
  profiles: [],
  groups: [],
  corporates: [],
};
const linesOf = (...lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

describe('fuel account apply', () => {
  test('makes the accounts of a file what it says, and says nothing to do the second time', async () => {
    const { fuel, file, eventsOf } = commandLine({}, { hasStore: false });
    const path = file('accounts.jsonl', linesOf(NORTH, EIGHT));
    const first = await fuel('account', 'apply', path, '--json', '--actor', 'Ada');
    expect([first.code, first.stdout]).toEqual([0, '{"applied":2,"unchanged":0,"refused":0}\n']);
    expect(first.stderr).toMatch(/^Created a new store in \S+\n$/);
    expect(await fuel('account', 'apply', path)).toMatchObject({
      code: 0,
      stdout: 'applied 0, unchanged 2, refused 0\n',
      stderr: '',
    });
    const events = await eventsOf('account-7');
    expect(events).toHaveLength(6);
    const [{ metadata }] = events as unknown as [{ metadata: Record<string, unknown> }];
    expect(metadata).toMatchObject({ actor: 'Ada', command: 'fuel account apply' });
    expect(events.every((event) => JSON.stringify(event.metadata) === JSON.stringify(metadata))).toBe(true);
  });

  test('names each bad line with its number, applies the rest, and ends with 1', async () => {
    const { fuel, file } = commandLine();
    const twice = '{"account_id":7,"name":"A","profiles":[],"name":"B"}\n';
    const lines = `broken\n${linesOf(EIGHT, { account_id: 8, groups: [{ id: 9 }] })}${twice}`;
    const { code, json, stderr } = await fuel('account', 'apply', file('accounts.jsonl', lines), '--json');
    expect([code, json]).toEqual([1, { applied: 1, unchanged: 0, refused: 3 }]);
    expect(stderr).toMatch(
      /^line 1: is not JSON: .*\nline 4: has the member "name" twice\nline 3: account-8: group 9 is new and needs a name/,
    );
  });

  test('reads standard input, also with Windows line ends and a byte order mark', async () => {
    commandLine();
    const stdin = `\uFEFF${linesOf(NORTH, EIGHT).replaceAll('\n', '\r\n')}\r\n`;
    const { code, json } = await runInProcess(['account', 'apply', '-', '--json'], { stdin });
    expect([code, json]).toEqual([0, { applied: 2, unchanged: 0, refused: 0 }]);
  });

  test('shows each change on a line in a dry run', async () => {
    const { fuel, file, eventsOf } = commandLine();
    const groups = [{ id: 1, name: 'A\nB' }];
    const path = file('accounts.jsonl', linesOf({ account_id: 8, name: 'Eight', groups }));
    const changes =
      'account 8  AccountOpened  {"name":"Eight"}\n' +
      'account 8  CorporateGroupAdded  {"corporate_group_id":1,"name":"A\\nB"}\n';
    const apply = ['account', 'apply', path, '--dry-run'];
    const summary = 'would apply 1, unchanged 0, refused 0\n';
    expect(await fuel(...apply)).toMatchObject({ code: 0, stdout: changes + summary, stderr: '' });
    expect(await fuel(...apply, '--json')).toMatchObject({
      code: 0,
      stdout: '{"applied":1,"unchanged":0,"refused":0}\n',
      stderr: changes,
    });
    expect(await eventsOf('account-8')).toEqual([]);
  });

  test('says in a dry run without a store that everything is new, and makes none', async () => {
    const { fuel, file } = commandLine({}, { hasStore: false });
    const path = file('accounts.jsonl', linesOf(NORTH));
    const { code, stdout, stderr } = await fuel('account', 'apply', path, '--dry-run');
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/^There is no store in .* yet: everything is new\n$/),
    ]);
    expect(stdout).toMatch(/^account 7 {2}AccountOpened {2}\{"name":"North Haulage"\}\n/);
    expect(existsSync(process.env.FUEL_DATA_DIR ?? '')).toBe(false);
  });
});

describe('fuel account export', () => {
  test('prints what apply reads, sorted by id, so that applying it changes nothing, or the accounts that are named', async () => {
    const { fuel, file } = commandLine();
    const accounts = linesOf({ account_id: 10, name: 'Ten' }, EIGHT, NORTH);
    await fuel('account', 'apply', file('accounts.jsonl', accounts));
    const { code, stdout, lines, stderr } = await fuel('account', 'export');
    expect([code, stderr]).toEqual([0, '']);
    expect(lines).toEqual([NORTH, EIGHT, { ...EIGHT, account_id: 10, name: 'Ten' }]);
    expect(stdout).not.toMatch(/[\u009b\u202e]/);
    expect((await fuel('account', 'export', '--json')).stdout).toBe(stdout);
    const again = await fuel('account', 'apply', file('exported.jsonl', stdout), '--json');
    expect([again.code, again.json]).toEqual([0, { applied: 0, unchanged: 3, refused: 0 }]);
    const named = (await fuel('account', 'export', '10', '7', '10')).lines;
    expect(named.map((line) => line.account_id)).toEqual([7, 10]);
    expect(await fuel('account', 'export', '7', '99')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'fuel: No account 99. See `fuel account list`\n',
    });
    expect((await fuel('account', 'export', 'seven')).code).toBe(2);
  });

  test('names an account that cannot be read, or not be applied, prints the others, and ends with 1', async () => {
    const { fuel, append } = commandLine();
    await append('account-8', [opened('Eight', 8), { type: 'AccountGuessed', data: {} }]);
    await append('account-9', [opened('Nine', 9)]);
    const emails = Array(4_000).fill('some-one@example.com');
    await append('account-10', [
      opened('Ten', 10),
      keyIssued({ account_id: 10 }),
      { type: 'AccountContactsSet', data: { account_id: 10, emails } },
    ]);
    const { code, stderr, lines } = await fuel('account', 'export');
    expect([code, stderr]).toEqual([
      1,
      "account 8 is not exported, since it can't be read: unknown event type AccountGuessed\n" +
        'account 10: a line is longer than the 65536 bytes that fuel account apply takes\n',
    ]);
    expect(lines.map((line) => line.account_id)).toEqual([9, 10]);
  });

  test('of the documents is applied as it stands', async () => {
    const { fuel } = commandLine();
    const path = new URL('../../../../examples/accounts.jsonl', import.meta.url).pathname;
    const { code, json } = await fuel('account', 'apply', path, '--json');
    expect([code, json.refused]).toEqual([0, 0]);
    expect(readFileSync(path, 'utf8').split('\n').length).toBeGreaterThan(2);
  });
});
