import type { Command } from 'commander';
import { FuelError } from '../../../../base/errors.ts';
import { formatDateTime } from '../../../../domain/values/date-time.ts';
import {
  findTransaction,
  isMissing,
  seenAt,
  seenNow,
  transactionAnswer,
  transactionSections,
} from '../../../answers/transaction.ts';
import { addCommand, type Session } from '../../command/command.ts';
import { accountOf, deliveryContext } from '../../command/deliveries.ts';
import { dateTimeOption, idOption } from '../../command/options.ts';

interface ShowOptions {
  readonly at?: number;
}

export function addShowCommand(transaction: Command): void {
  addCommand<ShowOptions>(transaction, {
    usage: 'show <id>',
    summary: 'show what happened to a transaction, whether customers see it, and what was sent of it',
    example: 'fuel transaction show 501 --at 2026-09-03T12:00:00Z',
    options: (command) => command.option('--at <time>', 'what customers could see then', dateTimeOption),
    work: show,
  });
}

async function show(
  session: Session,
  [argument = '']: readonly string[],
  { at }: ShowOptions,
): Promise<number> {
  const { engines, clock, out } = session;
  const id = idOption(argument);
  if (at !== undefined && at > clock.now()) {
    throw new FuelError(
      'USAGE',
      `--at ${formatDateTime(at)} is still to come: nobody has seen anything then`,
    );
  }
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
  out.answer(transactionAnswer(found, seen), transactionSections(found, seen));
  return 0;
}
