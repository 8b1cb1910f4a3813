import { FuelError } from '../../../../base/errors.ts';
import { VISIBLE_STATUSES, type VisibleStatus } from '../../../../domain/transaction-events.ts';
import { EARLIEST_MS, LATEST_MS } from '../../../../domain/values/date-time.ts';
import { searchable } from '../../../../domain/values/search-text.ts';
import { listRows } from '../../../../pull/view/list-rows.ts';
import type { Place } from '../../../../pull/view/transactions-view.ts';
import { readId, requirePast } from '../../../answers/filters.ts';
import {
  findTransaction,
  hasPlate,
  isMissing,
  recordAnswer,
  seenAt,
  seenNow,
  transactionAnswer,
  transactionShown,
} from '../../../answers/transaction.ts';
import { command, noun, type Session } from '../../command/command.ts';
import { deliveryContext } from '../../command/deliveries.ts';
import { accountOf, findAccount, isShown } from '../../command/known-names.ts';
import * as option from '../../command/options.ts';
import { erase } from './erase-command.ts';
import { importFile } from './import-commands.ts';

const DEFAULT_LIMIT = 50;
/** After so many records a note says how to read fewer. */
const MANY_READ = 10_000;
/** One command reads no more. */
const MAX_READ = 200_000;

const LIST = {
  account: option.required(option.id('of this account')),
  from: option.time('created at or after this time'),
  to: option.time('created at or before this time'),
  corporate: option.id('of this corporate'),
  plate: option.valued(
    'text',
    'the number plate contains this text; only its letters and digits count, in any case',
    option.readSearch,
  ),
  status: option.choice('status', 'of this status', VISIBLE_STATUSES, readStatus),
  limit: option.withDefault(option.count('at most this many'), DEFAULT_LIMIT),
  after: option.id('continue after this transaction'),
};
type ListOptions = option.Values<typeof LIST>;

const list = command({
  usage: 'list',
  summary: "list an account's transactions as customers see them, newest first; not voided or cancelled ones",
  example: 'fuel transaction list --account 7 --plate "ABC 123" --from 2026-09-01T00:00:00Z',
  options: LIST,
  async work({ engines, out }, _, options) {
    const { account, from = EARLIEST_MS, to = LATEST_MS, corporate, plate, status, limit } = options;
    if (from > to) {
      throw option.usage('--from is after --to: nothing can be between them.');
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
    // One more than is printed tells nothing: without a filter a page is as long as the list.
    for await (const row of listRows(view, query, plate === undefined ? limit : undefined)) {
      read += 1;
      if (isWanted(row)) {
        await out.row(recordAnswer(account, row), 'transaction');
        printed += 1;
      }
      if (printed >= limit) return 0;
      if (read === MANY_READ)
        out.note(`read ${MANY_READ} records so far: --from, --to or --corporate leave fewer to read`);
      if (read >= MAX_READ) {
        out.note(`stopped after ${MAX_READ} records: continue with --after ${row.id}, or ask for less`);
        return 1;
      }
    }
    if (read === 0) await requireKnownTo(engines, options);
    return 0;
  },
});

const show = command({
  usage: 'show <id>',
  summary: 'show what happened to a transaction, whether customers see it, and what was sent of it',
  example: 'fuel transaction show 501 --at 2026-09-03T12:00:00Z',
  args: [readId],
  options: {
    at: option.time('what customers could see then'),
    personal: option.personal,
  },
  async work(session, [id], { at, personal }) {
    const { engines, clock, out } = session;
    requirePast(at, clock.now());
    const parts = { ...deliveryContext(session), view: engines.view(), accountOf: accountOf(session) };
    const found = await findTransaction(id, parts);
    const { isErased } = found;
    if (isMissing(found)) {
      throw new FuelError('REFUSED', `transaction ${id} ${isErased ? 'was erased' : 'is not known'}`);
    }
    if (found.events.length === 0) {
      const why = isErased ? 'it was erased' : 'it was never recorded';
      out.note(
        `no event calls for what is shown of transaction ${id}: ${why}; fuel verify says how to repair that`,
      );
    }
    const seen = at === undefined ? seenNow(found) : await seenAt(found, at, parts);
    const shown = transactionShown(found, seen, { personal: personal === true });
    out.answer(transactionAnswer(found, seen), { id: 'transaction', shown });
  },
});

export const addTransactionCommands = noun({
  name: 'transaction',
  summary: "transactions' events",
  example: 'fuel transaction import september.jsonl',
  commands: [importFile, list, show, erase],
});

/** Where the list continues after a transaction. Throws `REFUSED` where it is not in the account's list. */
async function placeOf(
  engines: Session['engines'],
  { account, after }: ListOptions,
): Promise<Place | undefined> {
  if (after === undefined) return undefined;
  const row = (await engines.view().find([after])).get(after)?.shown;
  if (row?.accountId === account) return row;
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
  if (await isShown(engines, { accountId: account, references: { corporate_id: corporate } })) return;
  throw new FuelError(
    'REFUSED',
    `account ${account} has no corporate ${corporate}: fuel account show ${account}`,
  );
}

function readStatus(text: string): VisibleStatus {
  const status = VISIBLE_STATUSES.find((known) => known === text);
  if (status !== undefined) return status;
  throw option.usage(
    `It must be ${VISIBLE_STATUSES.join(' or ')}: what was voided or cancelled is not shown to customers, and ` +
      'stands in fuel audit --type TransactionVoided,TransactionCancelled.',
  );
}
