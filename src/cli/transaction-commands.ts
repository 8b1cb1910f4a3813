import { createReadStream } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { addAbortSignal } from 'node:stream';
import type { Command } from 'commander';
import { transactionDeliveries } from '../delivery/transaction-deliveries.ts';
import { OPERATIONS_STREAM } from '../domain/operations-events.ts';
import { transactionStream } from '../domain/transaction-events.ts';
import { FuelError } from '../errors.ts';
import { printableData, recordedAt } from '../event-store/codec.ts';
import { newEvent } from '../event-store/new-event.ts';
import { type ImportCounts, importTransactions } from '../import/import-transactions.ts';
import { addCommand, addNoun, type Session } from './command.ts';
import { deliveryJson, deliveryText } from './delivery-json.ts';
import { deliveryTerms } from './delivery-terms.ts';
import { idOption } from './options.ts';
import { progressLine } from './progress.ts';

const READ_BYTES = 256 * 1024;

export function addTransactionCommands(program: Command): void {
  const transaction = addNoun(program, {
    name: 'transaction',
    summary: "transactions' events",
    example: 'fuel transaction import september.jsonl',
  });
  addCommand(transaction, {
    usage: 'import <file>',
    summary: 'record transaction events from a file of JSON lines, or from standard input (-)',
    example: 'fuel transaction import september.jsonl',
    changes: true,
    work: importFile,
  });
  addCommand(transaction, {
    usage: 'show <id>',
    summary: "show a transaction's events and whether customers see it",
    example: 'fuel transaction show 501',
    work: show,
  });
  addCommand<{ reason: string }>(transaction, {
    usage: 'erase <id>',
    summary: "remove a transaction's events for good; its id is never recorded, shown or pushed again",
    example: 'fuel transaction erase 501 --reason "court order 2026/118"',
    options: (command) => command.requiredOption('--reason <reason>', 'why, for the auditors'),
    changes: true,
    work: erase,
  });
}

async function importFile(session: Session, [file = '']: readonly string[]): Promise<number> {
  const { engines, clock, author, out } = session;
  if (file !== '-') await requireReadable(file);
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort());
  const input = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: READ_BYTES });
  const progress = progressLine();
  const counts = await importTransactions({
    store: engines.store(),
    input: addAbortSignal(stopped.signal, input),
    author,
    clock,
    onRefused: (lineNumber, reason) => {
      progress.end();
      out.note(`line ${lineNumber}: ${reason}`);
    },
    onProgress: (so_far) => progress.show(text(so_far)),
    signal: stopped.signal,
  });
  progress.end();
  out.result(counts, text(counts));
  if (stopped.signal.aborted) out.note('interrupted: import the same file again to go on');
  return counts.refused > 0 || stopped.signal.aborted ? 1 : 0;
}

async function requireReadable(file: string): Promise<void> {
  try {
    await access(file, constants.R_OK);
    if (!(await stat(file)).isDirectory()) return;
  } catch (cause) {
    throw new FuelError('REFUSED', `${file} can't be read`, { cause });
  }
  throw new FuelError('REFUSED', `${file} is a folder: name a file`);
}

async function show(session: Session, [argument = '']: readonly string[]): Promise<number> {
  const { engines, out } = session;
  const id = idOption(argument);
  const events = await engines.store().readStream(transactionStream(id));
  if (events.length === 0) {
    const erased = await engines.store().isErased(transactionStream(id));
    throw new FuelError(
      'REFUSED',
      erased ? `transaction ${id} was erased` : `transaction ${id} is not known`,
    );
  }
  const row = await engines.view().find(id);
  const visible = row !== undefined && row !== 'hidden';
  const shown = events.map((event) => ({
    revision: event.revision,
    at: recordedAt(event),
    type: event.type,
    data: printableData(event),
  }));
  const { deliveries, notSent } = await transactionDeliveries(id, events, deliveryTerms(session));
  const lines = [
    `transaction ${id}: ${visible ? 'visible' : 'not visible'} to the customer`,
    ...shown.map((event) => `${event.at}  ${event.type}  ${JSON.stringify(event.data)}`),
    ...deliveries.map(deliveryText),
    ...notSent.map(({ key, reason }) => `not sent to key ${key}: ${reason}`),
  ];
  out.result(
    { id, events: shown, visible, deliveries: deliveries.map(deliveryJson), not_sent: notSent },
    lines.join('\n'),
  );
  return 0;
}

/** The order makes it safe to run again after a crash: on record first, then gone, then out of sight. */
async function erase(
  session: Session,
  [argument = '']: readonly string[],
  options: { reason: string },
): Promise<number> {
  const { engines, clock, author, out } = session;
  const id = idOption(argument);
  const store = engines.store();
  const stream = transactionStream(id);
  if (!(await store.isErased(stream))) {
    const [first] = await store.readStream(stream);
    const accountId = (first?.data as { account_id?: unknown } | undefined)?.account_id;
    const data = {
      transaction_id: id,
      account_id: typeof accountId === 'number' ? accountId : null,
      reason: options.reason,
    };
    const event = newEvent({ type: 'TransactionErased', data }, author, clock.now());
    await store.append([{ stream: OPERATIONS_STREAM, expected: 'any', events: [event] }]);
    await store.erase(stream);
  }
  await engines.queue().erase(id, clock.now());
  await engines.view().erase(id);
  out.result({ id, erased: true }, `transaction ${id} was erased`);
  return 0;
}

function text(counts: ImportCounts): string {
  return `recorded ${counts.recorded}, unchanged ${counts.unchanged}, refused ${counts.refused}`;
}
