import { describe, expect, test } from 'vitest';
import { opened } from '../../../support/accounts/account-samples.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { confirmed, linesOf, voided } from '../../../support/transactions/e2e-samples.ts';

const other = { account_id: 9 };
const named = { corporate: { id: 99, name: 'Nowhere' } };

async function imported() {
  const line = commandLine();
  await line.append('account-7', [opened()]);
  await line.append('account-9', [{ type: 'AccountOpened', data: { account_id: 9, name: 'Nine' } }]);
  const corporate = { account_id: 9, corporate_id: 31, name: 'North', corporate_group_id: null };
  await line.append('account-9', [{ type: 'CorporateAdded', data: corporate }]);
  const path = line.file('september.jsonl', linesOf([confirmed(1, named), confirmed(2, other), voided(8)]));
  const { code } = await line.fuel('transaction', 'import', path, '--actor', 'ada');
  expect(code).toBe(1);
  const { id } = (await line.fuel('import', 'list', '--json')).json as { id: string };
  return { ...line, path, id };
}

describe('fuel import', () => {
  test('lists who imported which file, and what it came to', async () => {
    const { fuel, path, id } = await imported();
    const [entry] = (await fuel('import', 'list', '--json')).lines;
    expect(entry).toEqual({
      ...{ id, at: expect.any(String), ended_at: expect.any(String), actor: 'ada', source: path },
      ...{ recorded: 2, unchanged: 0, refused: 1, accounts: [7, 9] },
    });
    const again = await fuel('transaction', 'import', path, '--json');
    expect(again.json).toEqual({ recorded: 0, unchanged: 2, refused: 1 });
    const { stdout } = await fuel('import', 'list', '--limit', '1');
    expect(stdout.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^Id +At +Ended +Actor +Source +Recorded +Unchanged +Refused +Accounts$/),
      expect.stringMatching(new RegExp(`  ${path} +0 +2 +1 `)),
    ]);
    expect((await fuel('import', 'list', '--since', '2999-01-01T00:00:00Z')).stdout).toBe('');
  });

  test('shows what is left of one by account, and what the directory lacks', async () => {
    const { fuel, done, id } = await imported();
    expect(await done('import', 'show', id)).toMatchObject({
      ...{ id, recorded: 2, refused: 1 },
      by_account: [
        { account: 7, transactions: 1, visible: 1 },
        { account: 9, transactions: 1, visible: 1 },
      ],
      unknown_accounts: [],
      unknown_corporates: [{ account: 7, corporate: 99 }],
    });
    expect(await done('import', 'void', id, '--reason', 'a mistake')).toEqual({
      ...{ voided: 2, already: 0, pushed: 0 },
    });
    const { stdout } = await fuel('import', 'show', id);
    expect(stdout).toMatch(
      /^Id +\d{4}.*\nAt.*\nEnded.*\nActor +ada\nSource.*\nRecorded +2\n.*\nRefused +1\n/,
    );
    expect(stdout).toMatch(/^By account\n.*\n +7 .*\n +9 +1 +0$/m);
  });

  test('void in a dry run says what it would do, and does it only without', async () => {
    const { fuel, done, id } = await imported();
    const { code, stdout } = await fuel('import', 'void', id, '--reason', 'a mistake', '--dry-run');
    expect([code, stdout]).toEqual([0, 'would void 2, already 0, pushed 0\n']);
    expect(await done('import', 'void', id, '--reason', 'x')).toEqual({ voided: 2, already: 0, pushed: 0 });
    expect(await done('import', 'void', id, '--reason', 'x')).toEqual({ voided: 0, already: 2, pushed: 0 });
  });

  test('show warns of what the directory lacks, and says how to add or undo it', async () => {
    const { fuel, file, id } = await imported();
    expect((await fuel('import', 'show', id)).stderr).toBe(
      'warning: the directory lacks corporate 99 of account 7: where that is right, fuel account corporate 7 99 ' +
        `--name NAME; where it is a mistake, fuel import void ${id} --reason REASON\n`,
    );
    const path = file('more.jsonl', linesOf([confirmed(3, { account_id: 8 })]));
    expect((await fuel('transaction', 'import', path)).stderr).toBe('');
    const later = (await fuel('import', 'list', '--limit', '1', '--json')).json.id;
    expect((await fuel('import', 'show', later)).stderr).toContain(
      'warning: the directory lacks account 8: where that is right, fuel account open 8 --name NAME; ',
    );
  });

  test.each(['show', 'void'])('%s refuses an import that is not known', async (verb) => {
    const { fuel } = commandLine();
    const reason = verb === 'void' ? ['--reason', 'x'] : [];
    const { code, stderr } = await fuel('import', verb, '2026-09-03-00000000', ...reason);
    expect(code).toBe(1);
    expect(stderr).toContain('import 2026-09-03-00000000 is not known: fuel import list');
  });
});
