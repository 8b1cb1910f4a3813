import { createInterface } from 'node:readline/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { FuelError } from '../../../base/errors.ts';
import { embeddedFiles } from '../../../engines/sqlite/embedded-files.ts';
import { DELIVERIES_GROUP } from '../../../push/fan-out/run-fan-out.ts';
import { eraseTransaction } from '../../erase/erase-transaction.ts';
import { importTransactions } from '../../import/import-transactions.ts';
import { addCommand, addNoun, type Session } from '../command/command.ts';
import { openInput } from '../command/input-file.ts';
import { longWork } from '../command/long-work.ts';
import { idOption, nameOption } from '../command/options.ts';
import { replayWhereConsumed } from '../command/replay.ts';
import { addListCommand } from './transactions/list.ts';
import { addShowCommand } from './transactions/show.ts';

interface EraseOptions {
  readonly reason: string;
  readonly yes?: true;
  readonly compact?: true;
}

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
  addListCommand(transaction);
  addShowCommand(transaction);
  addCommand<EraseOptions>(transaction, {
    usage: 'erase <id>',
    summary: "remove a transaction's events for good; its id is never recorded, shown or pushed again",
    example: 'fuel transaction erase 501 --reason "court order 2026/118"',
    options: (command) =>
      command
        .requiredOption('--reason <reason>', 'why, for the auditors', nameOption)
        .option('--yes', 'do not ask for the id again')
        .option('--compact', 'rewrite embedded files of any size, which may take minutes'),
    changes: true,
    work: erase,
  });
}

function importFile(session: Session, [file = '']: readonly string[]): Promise<number> {
  const { engines, clock, author, out } = session;
  return longWork(out, { again: 'import the same file again' }, async ({ onRefused, ...parts }) =>
    importTransactions({
      store: engines.store(),
      input: await openInput(file, parts.signal),
      author,
      clock,
      onRefused: (lineNumber, reason) => onRefused(`line ${lineNumber}`, reason),
      ...parts,
    }),
  );
}

async function erase(
  session: Session,
  [argument = '']: readonly string[],
  { reason, yes, compact }: EraseOptions,
): Promise<number> {
  const { config, engines, clock, author, out } = session;
  const id = idOption(argument);
  if (!yes) await confirmId(id);
  await engines.bind();
  const files = {
    folder: config.FUEL_DATA_DIR,
    databases: embeddedFiles(config.FUEL_DATA_DIR),
    compact: compact === true,
  };
  const [store, queue, view] = [engines.store(), engines.queue(), engines.view()];
  const remains = await eraseTransaction(id, { store, queue, view, files, clock, author, reason });
  await replayWhereConsumed(engines, DELIVERIES_GROUP);
  if (config.EVENTSTORE_URL !== undefined) {
    out.note(
      'EventStoreDB keeps the erased bytes until a scavenge: see "Erasing" in docs/operations/customers.md',
    );
  }
  if (remains.length === 0) {
    out.result({ id, erased: true }, `transaction ${id} was erased`);
    return 0;
  }
  out.result({ id, erased: true, remains }, `transaction ${id} was erased, but not everywhere`);
  for (const { file, reason } of remains) out.note(`${file} may still hold it: ${reason}`);
  out.note(
    'Run the same command again when the service is less busy or stopped (with --compact if a file is large).',
  );
  out.note('Remove files that the service does not use yourself: copies and old backups.');
  return 1;
}

/** An erasure can't be undone, so a typing error must not cause one. */
async function confirmId(id: number): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new InvalidArgumentError('An erasure is for good: pass --yes where no terminal can ask.');
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`This is for good. Type the id of the transaction once more: `);
  terminal.close();
  if (answer.trim() !== String(id)) throw new FuelError('REFUSED', 'not erased: that is another id');
}
