import type { Command } from 'commander';
import type { Directory } from '../../../../projections/directory.ts';
import type { DirectoryAccount } from '../../../../projections/directory-entry.ts';
import { loadDirectory } from '../../../accounts/directory/load-directory.ts';
import { FuelError } from '../../../base/errors.ts';
import { MAX_LINE_BYTES } from '../../../event-store/lines/lines.ts';
import { unknownAccount } from '../../answers/names.ts';
import { bytesOf, linesOf } from '../../apply/export-account.ts';
import { addCommand, type Session } from '../command/command.ts';
import { sortedAccounts } from '../command/known-names.ts';
import { idOption } from '../command/options.ts';

export function addExportCommand(account: Command): void {
  addCommand(account, {
    usage: 'export [ids...]',
    summary:
      'print accounts in the form that fuel account apply reads, sorted by id: all, or those that are named',
    example: 'fuel account export > customers.jsonl',
    work: exportAccounts,
  });
}

async function exportAccounts({ engines, out }: Session, ids: readonly string[]): Promise<number> {
  const named = ids.map(idOption);
  const directory = await loadDirectory(engines.store(), engines.directory());
  let faults = 0;
  const fault = (reason: string): void => {
    faults += 1;
    out.note(reason);
  };
  for (const { id, account, unreadable } of accountsOf(directory, named)) {
    if (account === undefined) {
      fault(`account ${id} is not exported, since it can't be read: ${unreadable?.reason}`);
      continue;
    }
    for (const line of linesOf(account)) {
      if (bytesOf(line) > MAX_LINE_BYTES) {
        fault(
          `account ${id}: a line is longer than the ${MAX_LINE_BYTES} bytes that fuel account apply takes`,
        );
      }
      await out.line(line, JSON.stringify(line));
    }
  }
  return faults > 0 ? 1 : 0;
}

/** Sorted by id. Throws `REFUSED` before anything is printed if one is not known. */
function accountsOf(directory: Directory, ids: readonly number[]): DirectoryAccount[] {
  for (const id of ids)
    if (directory.account(id) === undefined) throw new FuelError('REFUSED', unknownAccount(id));
  return sortedAccounts(directory).filter(({ id }) => ids.length === 0 || ids.includes(id));
}
