import type { Command } from 'commander';
import type { TransactionRow } from '../../../../projections/transactions.ts';
import { noAccessReason } from '../../../accounts/account-state.ts';
import { loadAccount } from '../../../accounts/directory/load-directory.ts';
import { deliveryJson } from '../../../deliveries/describe-delivery.ts';
import type { Delivery } from '../../../deliveries/queue/delivery-queue.ts';
import { timelineOf } from '../../../deliveries/timeline.ts';
import { transactionDeliveries } from '../../../deliveries/transaction-deliveries.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import { FuelError } from '../../../errors.ts';
import { printableData, recordedAt } from '../../../event-store/codec.ts';
import type { RecordedEvent } from '../../../event-store/event-store.ts';
import { printableLine } from '../../../printable.ts';
import { type AppliedEvent, archivedText, effectsOf, rowAt } from '../../../transactions/as-of.ts';
import { addCommand, type Session } from '../../command/command.ts';
import { deliveryContext, withHeldReasons } from '../../command/deliveries.ts';
import { dateTimeOption, idOption } from '../../command/options.ts';
import { accessAt } from './access-at.ts';

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
  const events = await engines.store().readStream(transactionStream(id));
  const row = await engines.view().find(id);
  const { deliveries, notSent } = await transactionDeliveries(id, events, deliveryContext(session));
  if (events.length === 0) await noteNoEvents(session, id, { isShown: isShown(row), deliveries });
  const applied = effectsOf(events);
  const whole = await Promise.all(deliveries.map((delivery) => engines.queue().find(delivery.id)));
  const found = await withHeldReasons(
    session,
    whole.filter((delivery): delivery is Delivery => delivery !== undefined),
  );
  const timeline = timelineOf({ applied, deliveries: found, notSent });
  const seen = at === undefined ? await seenNow(session, row, events) : await seenAt(session, applied, at);
  const document = {
    id,
    events: events.map((event) => ({
      revision: event.revision,
      at: recordedAt(event),
      type: event.type,
      data: printableData(event),
    })),
    ...seen.document,
    deliveries: (await withHeldReasons(session, deliveries)).map(deliveryJson),
    not_sent: notSent,
    timeline: timeline.map(({ entry }) => entry),
  };
  const lines = [`transaction ${id}: ${seen.text}`, ...seen.lines, ...timeline.map(({ text }) => text)];
  out.result(document, lines.join('\n'));
  return 0;
}

/**
 * Says that what is shown has no event to call for it. Throws `REFUSED` where there is nothing to show either; the
 * deliveries of an erased transaction stay in the log, and are nothing.
 */
async function noteNoEvents(
  { engines, out }: Session,
  id: number,
  found: { readonly isShown: boolean; readonly deliveries: readonly unknown[] },
): Promise<void> {
  const isErased = await engines.store().isErased(transactionStream(id));
  if (!found.isShown && (isErased || found.deliveries.length === 0)) {
    throw new FuelError('REFUSED', `transaction ${id} ${isErased ? 'was erased' : 'is not known'}`);
  }
  const why = isErased ? 'it was erased' : 'it was never recorded';
  out.note(
    `no event calls for what is shown of transaction ${id}: ${why}; fuel verify says how to repair that`,
  );
}

type FoundRow = TransactionRow | 'hidden' | undefined;

interface Seen {
  readonly document: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly lines: readonly string[];
}

/** With the record where nothing else shows what customers see. */
async function seenNow(
  { engines, clock }: Session,
  row: FoundRow,
  events: readonly RecordedEvent[],
): Promise<Seen> {
  if (!isShown(row)) return { ...visibility(false, null), lines: [] };
  const entry = await loadAccount(engines.store(), row.accountId);
  const noAccess =
    entry === undefined ? 'the account was never opened' : noAccessReason(entry.account, clock.now());
  const record = events.length === 0 ? archivedText(row) : undefined;
  const { document, text } = visibility(true, noAccess ?? null);
  return {
    document: { ...document, ...(record !== undefined && { record }) },
    text,
    lines: record === undefined ? [] : [printableLine(record)],
  };
}

/** A record that is there is visible only while requests of its account are answered. */
function visibility(isThere: boolean, noAccess: string | null, at = ''): Pick<Seen, 'document' | 'text'> {
  const why = isThere ? noAccess : null;
  const isVisible = isThere && why === null;
  return {
    document: { visible: isVisible, ...(why !== null && { no_access: why }) },
    text:
      `${isVisible ? 'visible' : 'not visible'} to the customer${at}` +
      (why === null ? '' : `: the record is there, but requests of its account are refused: ${why}`),
  };
}

function isShown(row: FoundRow): row is TransactionRow {
  return row !== undefined && row !== 'hidden';
}

/** By the events that were recorded until then, and by the account's: the view only knows the present. */
async function seenAt(
  { engines, config }: Session,
  applied: readonly AppliedEvent[],
  atMs: number,
): Promise<Seen> {
  const row = rowAt(applied, atMs);
  const at = formatDateTime(atMs);
  const record = row === undefined ? null : archivedText(row);
  const accountId = (row ?? applied.find((each) => each.row !== undefined)?.row)?.accountId;
  const environment = config.FUEL_ENVIRONMENT;
  const found =
    accountId === undefined
      ? { noAccess: null, keys: [] }
      : await accessAt(engines.store(), accountId, { atMs, environment });
  const { keys } = found;
  const keyLines =
    keys === null
      ? ['the account can not be read: who had access then is not known']
      : keys.map(({ key, reason }) => `key ${key}: ${reason ?? 'had access'}`);
  const { document, text } = visibility(row !== undefined, found.noAccess, ` at ${at}`);
  return {
    document: { at, ...document, record, access: keys },
    text,
    lines: [...(record === null ? [] : [printableLine(record)]), ...keyLines],
  };
}
