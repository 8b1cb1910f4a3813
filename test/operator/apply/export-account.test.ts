import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { printableLine } from '../../../src/base/printable.ts';
import type { Account } from '../../../src/domain/account.ts';
import { decide } from '../../../src/domain/account-commands.ts';
import {
  type DesiredAccount,
  decideDesired,
  faultsOfDesired,
} from '../../../src/operator/apply/desired-account.ts';
import { bytesOf, linesOf } from '../../../src/operator/apply/export-account.ts';
import { MAX_LINE_BYTES } from '../../../src/operator/lines/lines.ts';
import { startApplying } from '../../support/accounts/applying.ts';
import { commandSequences } from '../../support/accounts/arbitrary-commands.ts';
import { desiredAccounts } from '../../support/accounts/desired-accounts.ts';
import { evolve } from '../../support/accounts/evolve.ts';

/** The account after these lines, as printed; each must be applicable. */
function applied(lines: Iterable<DesiredAccount>): Account | undefined {
  let account: Account | undefined;
  for (const line of lines) {
    const read = JSON.parse(printableLine(JSON.stringify(line)));
    expect(faultsOfDesired(read)).toEqual([]);
    const decision = decideDesired(read, account, 1_000);
    if (decision.kind === 'refused') throw new Error(decision.reason);
    if (decision.kind === 'events') account = evolve(account, decision.events, 1_000);
  }
  return account;
}

function accountAfter(commands: Parameters<typeof decide>[0][]): Account | undefined {
  let account: Account | undefined;
  for (const command of commands) {
    const decision = decide(command, account);
    for (const event of decision.kind === 'events' ? decision.events : [])
      account = evolve(account, [event], 1_000);
  }
  return account;
}

describe('an exported account', () => {
  test('is one line in the form that is applied, its items sorted', () => {
    const account = applied([
      {
        account_id: 7,
        name: 'North',
        profiles: [
          { profile: 'b', from: '2026-01-01T00:00:00Z' },
          { profile: 'a', from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z' },
        ],
        groups: [
          { id: 10, name: 'Ten' },
          { id: 9, name: 'Nine' },
        ],
        corporates: [
          { id: 2, name: 'Two', group_id: 9 },
          { id: 1, name: 'One' },
        ],
      },
    ]);
    expect(account && [...linesOf(account)]).toEqual([
      {
        account_id: 7,
        name: 'North',
        integration: 'off',
        contacts: [],
        profiles: [
          { profile: 'a', from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' },
          { profile: 'b', from: '2026-01-01T00:00:00.000Z', to: null },
        ],
        groups: [
          { id: 9, name: 'Nine' },
          { id: 10, name: 'Ten' },
        ],
        corporates: [
          { id: 1, name: 'One', group_id: null },
          { id: 2, name: 'Two', group_id: 9 },
        ],
      },
    ]);
  });

  test('applied again changes nothing, and applied elsewhere is exported alike', () => {
    fc.assert(
      fc.property(commandSequences, desiredAccounts, (commands, desired) => {
        const decided = decideDesired({ ...desired, name: 'North' }, accountAfter(commands), 1_000);
        const events = decided.kind === 'events' ? decided.events : [];
        const account = evolve(accountAfter(commands), events, 1_000);
        if (account === undefined || account.closed !== null) return;
        const lines = [...linesOf(account)];
        for (const line of lines) expect(decideDesired(line, account, 2_000)).toEqual({ kind: 'unchanged' });
        const elsewhere = applied(lines);
        expect(elsewhere && [...linesOf(elsewhere)]).toEqual(lines);
      }),
    );
  });

  test('of any size is lines that can be applied', async () => {
    const { run, exported } = startApplying();
    const wide = Array.from({ length: 600 }, (_, id) => ({ id, name: `${'Ö'.repeat(80)} ${id}` }));
    const many = Array.from({ length: 990 }, (_, id) => ({ id: 1_000 + id, name: 'x', group_id: id % 600 }));
    const written = await run([
      { account_id: 7, name: 'North', contacts: Array(2_000).fill('some-one@example.com') },
      ...[0, 200, 400].map((from) => ({ account_id: 7, groups: wide.slice(from, from + 200) })),
      { account_id: 7, corporates: many },
      { account_id: 8, name: 'Eight' },
    ]);
    expect(written.refused).toEqual([]);
    const lines = await exported();
    const sizes = lines.map((line) => bytesOf(line));
    expect(lines.map(({ account_id }) => account_id)).toEqual([7, 7, 7, 7, 8]);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MAX_LINE_BYTES);
    expect(
      lines.map(({ groups, corporates }) => Number(groups?.length) + Number(corporates?.length)),
    ).toEqual([expect.any(Number), expect.any(Number), 997, expect.any(Number), 0]);
    expect((await run(lines)).counts).toEqual({ applied: 0, unchanged: 5, refused: 0 });
    const other = startApplying();
    expect(await other.run(lines)).toMatchObject({ counts: { applied: 5, unchanged: 0, refused: 0 } });
    expect(await other.exported()).toEqual(lines);
  });
});
