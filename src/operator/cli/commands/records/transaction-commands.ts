import { type Command, Option } from '@commander-js/extra-typings';
import { accessRows } from '../../../../accounts/rows/read-rows.ts';
import { FuelError } from '../../../../base/errors.ts';
import { VISIBLE_STATUSES } from '../../../../domain/transaction-events.ts';
import { EARLIEST_MS, LATEST_MS } from '../../../../domain/values/date-time.ts';
import { listRows } from '../../../../pull/view/list-rows.ts';
import type { Place } from '../../../../pull/view/transactions-view.ts';
import { readId, readTime } from '../../../answers/filters.ts';
import { unknownTransaction } from '../../../answers/names.ts';
import {
  findTransaction,
  hasPlate,
  isMissing,
  recordAnswer,
  transactionAnswer,
  transactionShown,
} from '../../../answers/transaction.ts';
import { searchable } from '../../../search/search-text.ts';
import { command, deliveryContext, noun, type Session } from '../../command/command.ts';
import { accountOf, currentAccounts, requireAccount } from '../../command/known-names.ts';
import * as option from '../../command/options.ts';
import { erase } from './erase-command.ts';
import { importFile } from './import-commands.ts';

const DEFAULT_LIMIT = 50;
/** One command reads at most this many records. */
const MAX_READ = 200_000;

/** The members of a line. */
export const TRANSACTION_COLUMNS = [
  'id',
  'account',
  'status',
  'created_at',
  'corporate',
  'number_plate',
  'total_amount',
];

const listSyntax = (it: Command) =>
  it
    .requiredOption('--account <id>', 'transactions of this account', readId)
    .option('--from <time>', 'created at or after this time', readTime)
    .option('--to <time>', 'created at or before this time', readTime)
    .option('--corporate <id>', 'only transactions of this corporate', readId)
    .option(
      '--plate <text>',
      'the number plate contains this text; only letters and digits count, in any case',
      option.readSearch,
    )
    .addOption(new Option('--status <status>', 'only transactions of this status').choices(VISIBLE_STATUSES))
    .option('--limit <n>', 'at most this many', option.readCount, DEFAULT_LIMIT)
    .option('--after <id>', 'continue after this transaction', readId);
type ListOptions = ReturnType<ReturnType<typeof listSyntax>['opts']>;

const list = command({
  name: 'list',
  summary:
    'list the transactions of an account that customers see, newest first; fuel audit lists voided and cancelled ones',
  example: 'fuel transaction list --account 7 --plate "ABC 123" --from 2026-09-01',
  syntax: listSyntax,
  lists: { what: 'transactions', csv: () => TRANSACTION_COLUMNS },
  async work(session, _, options) {
    const { engines, out } = session;
    const { account, from = EARLIEST_MS, to = LATEST_MS, corporate, plate, status, limit } = options;
    if (from > to) {
      throw option.usage('--from must not be later than --to');
    }
    const view = engines.view();
    const query = {
      accountId: account,
      fromMs: from,
      toMs: to,
      statuses: status === undefined ? VISIBLE_STATUSES : [status],
      references: { corporate_id: corporate },
      after: await placeOf(engines, options),
    };
    const wanted = plate && searchable(plate);
    const isWanted = (row: Parameters<typeof recordAnswer>[1]): boolean =>
      wanted === undefined || hasPlate(recordAnswer(account, row), wanted);
    let read = 0;
    let printed = 0;
    // Without a filter that is applied here, a page need not be longer than the list.
    for await (const row of listRows(view, query, plate === undefined ? limit : undefined)) {
      read += 1;
      if (isWanted(row)) {
        await out.row(recordAnswer(account, row), { id: 'transaction' });
        printed += 1;
      } else out.progress(`read ${read} records`);
      if (printed >= limit) return 0;
      if (read >= MAX_READ) {
        out.note(`Stopped after ${MAX_READ} records. Continue with --after ${row.id}, or narrow the range`);
        return 1;
      }
    }
    if (read === 0) await requireKnownTo(session, options);
    return 0;
  },
});

const show = command({
  name: 'show',
  summary: 'show what happened to a transaction, whether customers see it, and its deliveries',
  example: 'fuel transaction show 501',
  syntax: (it) => it.argument('<id>', 'the transaction', readId).option('--personal', option.PERSONAL),
  async work(session, [id], { personal }) {
    const { engines, out } = session;
    const parts = { ...deliveryContext(session), view: engines.view(), accountOf: accountOf(session) };
    const found = await findTransaction(id, parts);
    const { isErased } = found;
    if (isMissing(found)) {
      throw new FuelError('REFUSED', isErased ? `Transaction ${id} was erased` : unknownTransaction(id));
    }
    if (found.events.length === 0) {
      const why = isErased ? 'it was erased' : 'no event recorded it';
      out.note(`The view shows transaction ${id}, but ${why}. Run \`fuel verify view --repair\``);
    }
    const shown = transactionShown(found, { personal: personal === true });
    out.answer(transactionAnswer(found), { id: 'transaction', shown });
  },
});

export const addTransactionCommands = noun({
  name: 'transaction',
  summary: 'import, list, show and erase transactions',
  example: 'fuel transaction import september.jsonl',
  commands: [importFile, list, show, erase],
});

/** The place of a transaction in the account's list. Throws `REFUSED` if it is not in the list. */
async function placeOf(
  engines: Session['engines'],
  { account, after }: ListOptions,
): Promise<Place | undefined> {
  if (after === undefined) return undefined;
  const row = (await engines.view().find([after])).get(after)?.shown;
  if (row?.accountId === account) return row;
  throw new FuelError(
    'REFUSED',
    `Account ${account} shows no transaction ${after} to continue after. If it was voided, continue with --to and the time of ` +
      'the last line',
  );
}

/** Throws `REFUSED` for an account or a corporate that the rows of accounts lack. */
async function requireKnownTo(session: Session, { account, corporate }: ListOptions): Promise<void> {
  const tables = await currentAccounts(session);
  await requireAccount(tables, account);
  if (corporate === undefined) return;
  const named = { groups: [], corporates: [corporate] };
  if ((await accessRows(tables).members(account, named)).corporates.has(corporate)) return;
  throw new FuelError(
    'REFUSED',
    `Account ${account} has no corporate ${corporate}. See \`fuel account show ${account}\``,
  );
}
