import { describe, expect, test } from 'vitest';
import { corporateAdded, opened } from '../../../support/accounts/account-samples.ts';
import { commandLine, sharedCommandLine } from '../../../support/service/command-line.ts';
import { confirmed, external, linesOf, voided } from '../../../support/transactions/e2e-samples.ts';
import { confirmedData } from '../../../support/transactions/records.ts';

describe('fuel transaction import', () => {
  test('in a dry run judges every line as if those before it were recorded, and records nothing', async () => {
    const { fuel, file, append, withEngines } = commandLine();
    await append('transaction-1', [confirmed(1)]);
    const head = () => withEngines((engines) => engines.store().head());
    const before = await head();
    const lines = [confirmed(1), confirmed(2), voided(2), confirmed(2), voided(9), voided(1)];
    const path = file('some.jsonl', linesOf(lines));
    const { code, json, stderr } = await fuel('transaction', 'import', path, '--dry-run', '--json');
    expect([code, json]).toEqual([1, { recorded: 3, unchanged: 2, refused: 1 }]);
    expect(stderr).toMatch(/^line 5: transaction-9: it was never recorded/);
    expect(await head()).toBe(before);
    expect((await fuel('transaction', 'import', path, '--json')).json).toEqual(json);
    const again = await fuel('transaction', 'import', path, '--dry-run');
    expect(again.stdout).toBe('would record 0, unchanged 5, refused 1\n');
  });

  test('in a dry run makes no store', async () => {
    const { fuel, file } = commandLine({}, { hasStore: false });
    const path = file('one.jsonl', linesOf([confirmed(1)]));
    const { code, json, stderr } = await fuel('transaction', 'import', path, '--dry-run', '--json');
    expect([code, json]).toEqual([0, { recorded: 1, unchanged: 0, refused: 0 }]);
    expect(stderr).toMatch(/there is no store in .* yet: everything is new/);
    expect((await fuel('transaction', 'show', '1')).code).toBe(1);
  });

  test('is not listed before something has built the view, and the answer says what to start', async () => {
    const { fuel, file } = commandLine();
    await fuel('transaction', 'import', file('one.jsonl', linesOf([confirmed(1)])));
    const { code, stderr } = await fuel('transaction', 'list', '--account', '7');
    expect([code, stderr]).toEqual([1, expect.stringContaining('not built yet: start fuel serve')]);
  });

  test('says what it recorded, and names each refused line; the rest goes in', async () => {
    const { fuel, file, append, eventsOf } = commandLine();
    await append('account-7', [opened(), corporateAdded()]);
    const good = file('good.jsonl', linesOf([confirmed(1), confirmed(2), confirmed(1)]));
    expect(await fuel('transaction', 'import', good, '--json')).toMatchObject({
      code: 0,
      stdout: '{"recorded":2,"unchanged":1,"refused":0}\n',
      stderr: '',
    });
    const mixed = file('mixed.jsonl', `broken\n${linesOf([confirmed(3), voided(9)])}`);
    const { code, stdout, stderr } = await fuel('transaction', 'import', mixed, '--actor', 'Ada');
    expect([code, stdout]).toEqual([1, 'recorded 1, unchanged 0, refused 2\n']);
    expect(stderr.trim().split('\n')).toEqual([
      expect.stringMatching(/^line 1: is not JSON: /),
      expect.stringMatching(/^line 3: transaction-9: it was never recorded/),
    ]);
    expect(await eventsOf('transaction-3')).toMatchObject([
      { metadata: { actor: 'Ada', command: 'fuel transaction import' } },
    ]);
  });

  test('refuses a folder', async () => {
    const { fuel, file } = commandLine();
    const folder = file('x', '').slice(0, -2);
    expect((await fuel('transaction', 'import', folder)).stderr).toBe(
      `fuel: REFUSED: ${folder} is a folder: name a file\n`,
    );
  });
});

describe('fuel transaction list', () => {
  const { fuel } = sharedCommandLine(async ({ account, append, done }) => {
    await account(opened());
    const vehicleOf = (number_plate: string | null | undefined) => ({
      ...(confirmedData().vehicle as object),
      number_plate,
    });
    const plates = ['ABC 123', 'xyz 9', null];
    for (const id of [1, 2, 3, 4, 5]) {
      const created_at = `2026-09-0${id}T08:00:00.000Z`;
      const corporate = { id: 30 + (id % 2), name: 'Depot' };
      const vehicle = vehicleOf(plates[id % 3]);
      await append(`transaction-${id}`, [confirmed(id, { created_at, corporate, vehicle })]);
    }
    const other = { created_at: '2026-09-06T08:00:00.000Z', corporate: { id: 40, name: 'Yard' } };
    await append('transaction-6', [external(6, { ...other, vehicle: vehicleOf('XYZ 10') })]);
    await append('transaction-4', [voided(4)]);
    await append('transaction-9', [confirmed(9, { account_id: 8 })]);
    await done('projection', 'rebuild', 'transactions');
  });
  const list = (line: string) => fuel('transaction', 'list', ...line.split(' '), '--json');

  test.each([
    ['', [6, 5, 3, 2, 1]],
    ['--from 2026-09-02T08:00:00Z --to 2026-09-05T08:00:00Z', [5, 3, 2]],
    ['--corporate 31', [5, 3, 1]],
    ['--status EXTERNAL', [6]],
    ['--plate abc1', [3]],
    ['--plate ABC\u00a0123', [3]],
    ['--plate ＡＢＣ-１２３', [3]],
    ['--plate XYZ --limit 1', [6]],
    ['--limit 2', [6, 5]],
    ['--limit 2 --after 5', [3, 2]],
    ['--corporate 31 --status CONFIRMED --plate 123 --after 5', [3]],
  ] as const)('lists what customers see of the account, newest first: %s', async (filter, ids) => {
    const { code, lines } = await list(`--account 7 ${filter}`.trim());
    expect([code, lines.map(({ id }) => id)]).toEqual([0, ids]);
  });

  test('has one line for each transaction', async () => {
    expect((await list('--account 7 --limit 1 --after 6')).json).toEqual({
      id: 5,
      account: 7,
      status: 'CONFIRMED',
      created_at: '2026-09-05T08:00:00.000Z',
      corporate: 31,
      number_plate: null,
      total_amount: '100.270000',
    });
  });

  test.each([
    ['an unknown account', '--account 99', 1],
    ['an unknown corporate', '--account 7 --corporate 404', 1],
    ['a transaction of another account to continue after', '--account 7 --after 9', 1],
    ['a voided transaction to continue after', '--account 7 --after 4', 1],
    ['a status that customers do not see', '--account 7 --status VOID', 2],
    ['a plate without a letter or digit', '--account 7 --plate -', 2],
    ['an empty range', '--account 7 --from 2026-09-02T00:00:00Z --to 2026-09-01T00:00:00Z', 2],
    ['no account', '--limit 1', 2],
  ])('refuses %s', async (_, line, code) => {
    expect(await list(line)).toMatchObject({ code, stdout: '' });
  });
});
