import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandUnknownOpts as Command } from '@commander-js/extra-typings';
import { expect, test } from 'vitest';
import { createProgram } from '../../../../src/operator/cli/program.ts';
import { keyIssued, opened, PREFIX } from '../../../support/accounts/account-samples.ts';
import { commandLine } from '../../../support/service/command-line.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { confirmed, linesOf } from '../../../support/transactions/e2e-samples.ts';

/** Every command that records nothing, with arguments for an account, a key and a transaction that exist. */
const READING = [
  'account list',
  'account show 7',
  'account show 7 --at 2030-01-01T00:00:00Z',
  'account export',
  'account apply FILE --dry-run',
  'key list',
  `key show ${PREFIX}`,
  `key requests ${PREFIX}`,
  `webhook show ${PREFIX}`,
  'delivery list',
  `delivery list --key ${PREFIX}`,
  'delivery show 00000000-0000-5000-8000-000000000000',
  'delivery redeliver --failed --key abcdefghij --dry-run',
  'transaction list --account 7',
  'transaction list --account 99',
  'transaction show 1',
  'transaction import FILE --dry-run',
  'import list',
  'import show 2026-09-03-1a2b3c4d',
  'import void 2026-09-03-1a2b3c4d --dry-run --reason x',
  'driver find sam',
  'driver redact 77 --account 7 --dry-run --reason x',
  'projection status',
  'projection parked',
  'projection parked --follower deliveries',
  'verify',
  'verify view',
  'verify deliveries --account 7',
  'verify deliveries --explain',
  'audit --account 7',
  'audit --account 99',
  'audit verify',
  'audit export --account 7 --output FOLDER/export',
  'audit check FOLDER',
  'config show',
  'doctor',
];
/** They record, or run until they are stopped, or are about the program itself. */
const OTHERS = ['serve', 'mock', 'completion', 'help'];

/** The names of a command's subcommands that do something, from the program's on. */
function namesBelow(command: Command, above: readonly string[] = []): string[] {
  return command.commands.flatMap((each) => {
    const names = [...above, each.name()];
    const below = namesBelow(each, names);
    const isRecording = each.options.some(({ long }) => long === '--actor');
    const isNoun = each.commands.length > 0 && !each.options.some(({ long }) => long === '--json');
    return isRecording || isNoun ? below : [names.join(' '), ...below];
  });
}

test('every command that has no --actor is tried here', () => {
  const untried = namesBelow(createProgram()).filter(
    (name) => !OTHERS.includes(name) && !READING.some((line) => `${line} `.startsWith(`${name} `)),
  );
  expect(untried).toEqual([]);
});

function lines({ file }: Pick<ReturnType<typeof commandLine>, 'file'>): string[][] {
  const [path, folder] = [file('some.jsonl', linesOf([confirmed(1)])), temporaryFolder()];
  return READING.map((line) => line.replace('FILE', path).replace('FOLDER', folder).split(' '));
}

test('a command that only reads makes no file in an empty folder', async () => {
  const cli = commandLine({}, { hasStore: false });
  const folder = process.env.FUEL_DATA_DIR ?? '';
  mkdirSync(folder, { mode: 0o700 });
  for (const line of lines(cli)) {
    const { stdout, stderr } = await cli.fuel(...line);
    expect([line, stdout + stderr]).toEqual([line, expect.not.stringMatching(/unexpected|^$/)]);
    expect([line, readdirSync(folder)]).toEqual([line, []]);
  }
});

test('a command that only reads makes no file beside events.db, and says which one is missing', async () => {
  const cli = commandLine();
  await cli.account(opened(), keyIssued());
  await cli.append('transaction-1', [confirmed(1)]);
  const folder = process.env.FUEL_DATA_DIR ?? '';
  for (const name of readdirSync(folder)) if (name !== 'events.db') rmSync(join(folder, name));
  const notes = new Map<string, string>();
  for (const line of lines(cli)) {
    const { stdout, stderr } = await cli.fuel(...line);
    expect([line, stdout + stderr]).toEqual([line, expect.not.stringMatching(/unexpected|:memory:/)]);
    expect([line, readdirSync(folder)]).toEqual([line, ['events.db']]);
    notes.set(line.join(' '), stderr);
  }
  const missing = (files: string): string => `${folder} has no ${files} yet: \`fuel serve\` creates that\n`;
  expect(notes.get('delivery list')).toBe(`${missing('deliveries.db')}No deliveries found\n`);
  expect(notes.get('account list')).toBe('');
  expect(notes.get('projection status')).toBe(missing('transactions.db, subscriptions.db'));
});
