import type { RowReads } from '../../../accounts/rows/read-rows.ts';
import { everyAccount, readAccounts, type StoredAccount } from '../../../accounts/rows/stored-account.ts';
import { FuelError } from '../../../base/errors.ts';
import type { DomainEvent } from '../../../domain/events.ts';
import { unknownAccount } from '../../answers/names.ts';
import { applyAccounts } from '../../apply/apply-accounts.ts';
import { bytesOf, linesOf } from '../../apply/export-account.ts';
import { MAX_LINE_BYTES } from '../../lines/lines.ts';
import { command, requiresReason, unlessDryRun } from '../command/command.ts';
import { currentAccounts } from '../command/known-names.ts';
import { storeOfDryRun } from '../command/known-store.ts';
import { longWork, openInput, requireReadable } from '../command/long-work.ts';
import * as option from '../command/options.ts';

export const apply = command({
  name: 'apply',
  summary:
    'make accounts match a file of JSON lines, or standard input (-), with one account per line; members that a line ' +
    'leaves out do not change',
  example: 'fuel account apply customers.jsonl --dry-run',
  syntax: (it) =>
    it
      .argument('<file>', 'JSON lines, one account each; - for standard input')
      .option('--dry-run', `${option.DRY_RUN} (with --json on standard error)`)
      .option(
        '--reason <reason>',
        `${option.REASON}; required in production if a line switches something off`,
        option.readText,
      ),
  changes: unlessDryRun,
  begins: true,
  check: ([file]) => requireReadable(file),
  work(session, [file], { dryRun = false, reason }) {
    const { config, engines, clock, author, out } = session;
    const onApplied = async (events: readonly DomainEvent[]): Promise<void> => {
      for (const event of events) {
        // With --json the counts are the only document on standard output.
        if (out.json) out.note(eventText(event));
        else await out.line(undefined, eventText(event));
      }
    };
    return longWork(
      session,
      ({ onRefused, ...parts }) =>
        applyAccounts({
          store: dryRun ? storeOfDryRun(session) : engines.store(),
          input: openInput(file, parts.signal),
          author,
          clock,
          dryRun,
          reason,
          requiresReason: requiresReason(config),
          ...(dryRun && { onApplied }),
          onRefused: (lineNumber, why) => onRefused(`line ${lineNumber}`, why),
          ...parts,
        }),
      { names: dryRun ? { applied: 'would apply' } : {} },
    );
  },
});

export const exportAccounts = command({
  name: 'export',
  summary:
    'print accounts in the format that fuel account apply reads, sorted by id: all that are open, or those that are named',
  example: 'fuel account export > customers.jsonl',
  syntax: (it) => it.argument('[ids...]', 'only these accounts', option.readIds),
  async work(session, [named]) {
    const { out } = session;
    const tables = await currentAccounts(session);
    let faults = 0;
    const fault = (reason: string): void => {
      faults += 1;
      out.note(reason);
    };
    for await (const { id, account, unreadable } of accountsToExport(tables, named)) {
      if (account === undefined)
        fault(`account ${id} is not exported, since it can't be read: ${unreadable?.reason}`);
      else if (account.closed === null) {
        for (const line of linesOf(account)) {
          if (bytesOf(line) > MAX_LINE_BYTES)
            fault(
              `account ${id}: a line is longer than the ${MAX_LINE_BYTES} bytes that fuel account apply takes`,
            );
          await out.line(line, JSON.stringify(line));
        }
      } else if (named.length > 0)
        fault(`account ${id} is not exported, since it is closed and fuel account apply never closes one`);
    }
    return faults > 0 ? 1 : 0;
  },
});

function eventText({ type, data }: DomainEvent): string {
  const { account_id: id, ...rest } = data as Readonly<Record<string, unknown>>;
  return `account ${id}  ${type}  ${JSON.stringify(rest)}`;
}

/** Yields the accounts to export, sorted by id. Throws `REFUSED` for an unknown one, before anything is printed. */
async function* accountsToExport(
  tables: RowReads,
  ids: readonly number[],
): AsyncGenerator<StoredAccount, void> {
  if (ids.length === 0) return yield* everyAccount(tables);
  const accounts = await readAccounts(tables, ids);
  const unknown = ids.find((wanted) => !accounts.some(({ id }) => id === wanted));
  if (unknown !== undefined) throw new FuelError('REFUSED', unknownAccount(unknown));
  yield* accounts;
}
