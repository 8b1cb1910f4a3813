import { type Command, InvalidArgumentError, Option } from 'commander';
import { VISIBLE_STATUSES, type VisibleStatus } from '../../../../../projections/transactions.ts';
import { FuelError } from '../../../../base/errors.ts';
import { EARLIEST_MS, LATEST_MS } from '../../../../domain/values/date-time.ts';
import { hasPlate, listRecords } from '../../../../pull/view/list-records.ts';
import type { Place } from '../../../../pull/view/transactions-view.ts';
import { RECORD_COLUMNS, recordAnswer } from '../../../answers/transaction.ts';
import { addCommand, type Session } from '../../command/command.ts';
import { findAccount, isShown } from '../../command/known-names.ts';
import { countOption, dateTimeOption, idOption, nameOption } from '../../command/options.ts';

const DEFAULT_LIMIT = 50;
/** After so many records a note says how to read fewer. */
const MANY_READ = 10_000;
/** One command reads no more. */
const MAX_READ = 200_000;

interface ListOptions {
  readonly account: number;
  readonly from?: number;
  readonly to?: number;
  readonly corporate?: number;
  readonly plate?: string;
  readonly status?: VisibleStatus;
  readonly limit: number;
  readonly after?: number;
}

export function addListCommand(transaction: Command): void {
  addCommand<ListOptions>(transaction, {
    usage: 'list',
    summary:
      "list an account's transactions as customers see them, newest first; not voided or cancelled ones",
    example: 'fuel transaction list --account 7 --plate "ABC 123" --from 2026-09-01T00:00:00Z',
    options: (command) =>
      command
        .requiredOption('--account <id>', 'of this account', idOption)
        .option('--from <time>', 'created at or after this time', dateTimeOption)
        .option('--to <time>', 'created at or before this time', dateTimeOption)
        .option('--corporate <id>', 'of this corporate', idOption)
        .option(
          '--plate <text>',
          'whose number plate contains this, whatever spaces and capitals',
          nameOption,
        )
        .addOption(
          new Option('--status <status>', 'of this status').choices(VISIBLE_STATUSES).argParser(statusOption),
        )
        .option('--limit <n>', 'at most this many', countOption, DEFAULT_LIMIT)
        .option('--after <id>', 'continue after this transaction', idOption),
    work: list,
  });
}

async function list({ engines, out }: Session, _: readonly string[], options: ListOptions): Promise<number> {
  const { account, from = EARLIEST_MS, to = LATEST_MS, corporate, plate, status, limit } = options;
  if (from > to) {
    throw new InvalidArgumentError('--from is after --to: nothing can be between them.');
  }
  const view = engines.view();
  const query = {
    accountId: account,
    fromMs: from,
    toMs: to,
    statuses: status === undefined ? VISIBLE_STATUSES : [status],
    corporateIds: corporate === undefined ? undefined : [corporate],
    after: await placeOf(engines, options),
  };
  let read = 0;
  let printed = 0;
  // One more than is printed tells nothing: without a filter a page is as long as the list.
  for await (const record of listRecords(view, query, plate === undefined ? limit : undefined)) {
    read += 1;
    if (plate === undefined || hasPlate(record, plate)) {
      await out.row(RECORD_COLUMNS, recordAnswer(account, record));
      printed += 1;
    }
    if (printed >= limit) return 0;
    if (read === MANY_READ)
      out.note(`read ${MANY_READ} records so far: --from, --to or --corporate leave fewer to read`);
    if (read >= MAX_READ) {
      out.note(`stopped after ${MAX_READ} records: continue with --after ${record.id}, or ask for less`);
      return 1;
    }
  }
  if (read === 0) await requireKnownTo(engines, options);
  return 0;
}

/** Where the list continues after a transaction. Throws `REFUSED` where it is not in the account's list. */
async function placeOf(
  engines: Session['engines'],
  { account, after }: ListOptions,
): Promise<Place | undefined> {
  if (after === undefined) return undefined;
  const row = await engines.view().find(after);
  if (row !== undefined && row !== 'hidden' && row.accountId === account) return row;
  throw new FuelError(
    'REFUSED',
    `account ${account} shows no transaction ${after} to continue after: it may be voided since, continue with --to and the time of the last line`,
  );
}

/** An account that was never opened is known as long as transactions name it, and so is a corporate. */
async function requireKnownTo(
  engines: Session['engines'],
  { account, corporate }: ListOptions,
): Promise<void> {
  const entry = await findAccount(engines, account);
  if (corporate === undefined || entry?.account?.corporates.has(corporate)) return;
  if (await isShown(engines, { accountId: account, corporateIds: [corporate] })) return;
  throw new FuelError(
    'REFUSED',
    `account ${account} has no corporate ${corporate}: fuel account show ${account}`,
  );
}

function statusOption(text: string): VisibleStatus {
  const status = VISIBLE_STATUSES.find((known) => known === text);
  if (status !== undefined) return status;
  throw new InvalidArgumentError(
    `It must be ${VISIBLE_STATUSES.join(' or ')}: what was voided or cancelled is not shown to customers, and ` +
      'stands in fuel audit --type TransactionVoided,TransactionCancelled.',
  );
}
