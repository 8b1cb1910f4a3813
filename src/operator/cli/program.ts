import { Command, CommanderError } from 'commander';
import packageJson from '../../../package.json' with { type: 'json' };
import { FuelError } from '../../base/errors.ts';
import { printable, withoutKeys } from '../../base/printable.ts';
import { addAccountCommands } from './commands/account-commands.ts';
import { addAuditCommand } from './commands/audit/audit-command.ts';
import { addDeliveryCommands } from './commands/delivery-commands.ts';
import { addKeyCommands } from './commands/key-commands.ts';
import { addMockCommand } from './commands/mock-command.ts';
import { addProjectionCommands } from './commands/projection-commands.ts';
import { addDriverCommands } from './commands/records/driver-commands.ts';
import { addImportCommands } from './commands/records/import-commands.ts';
import { addTransactionCommands } from './commands/records/transaction-commands.ts';
import { addConfigCommands, addDoctorCommand, addServeCommand } from './commands/service-commands.ts';
import { addStoreCommands } from './commands/store-commands.ts';
import { addVerifyCommand } from './commands/verify-command.ts';
import { addWebhookCommands } from './commands/webhook-commands.ts';
import { addCompletionCommand } from './guide/completion.ts';
import { addHelpCommand, refuseUnknownName } from './guide/help.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs one command line and sets `process.exitCode`: 0 done, 1 refused or failed, 2 wrong usage. */
export async function main(argv: readonly string[]): Promise<void> {
  endOnLostOutput();
  try {
    await createProgram().parseAsync([...argv]);
  } catch (error) {
    process.exitCode = report(error);
  }
}

export function createProgram(): Command {
  const program = new Command('fuel')
    .description('Fuel transaction integration service: run it, provision customers, import, audit.')
    .version(packageJson.version)
    .addHelpText('beforeAll', refuseUnknownName)
    .addHelpText(
      'after',
      '\nExample:\n  fuel serve\n\nEvery command explains itself: fuel <noun> <verb> --help',
    )
    .exitOverride()
    .enablePositionalOptions() // in `parked retry 7 --json` the option belongs to retry, though parked has it too
    .configureOutput({ writeErr: printError, outputError: (text, write) => write(text) });
  addServeCommand(program);
  addAccountCommands(program);
  addKeyCommands(program);
  addWebhookCommands(program);
  addDeliveryCommands(program);
  addTransactionCommands(program);
  addImportCommands(program);
  addDriverCommands(program);
  addProjectionCommands(program);
  addVerifyCommand(program);
  addAuditCommand(program);
  addStoreCommands(program);
  addConfigCommands(program);
  addDoctorCommand(program);
  addMockCommand(program);
  addCompletionCommand(program);
  addHelpCommand(program);
  return program;
}

function report(error: unknown): number {
  // Commander has already printed its help, version and errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  if (error instanceof FuelError) {
    const { cause: known } = error;
    const isSaid = !(known instanceof Error) || error.message.includes(known.message.trim());
    const cause = isSaid ? '' : ` (${known.message})`;
    printError(`fuel: ${error.code}: ${error.message}${cause}\n`);
    return error.code === 'USAGE' ? EXIT_USAGE : EXIT_FAILED;
  }
  if (error instanceof DOMException && error.name === 'AbortError') {
    printError('fuel: interrupted\n');
    return EXIT_FAILED;
  }
  if (isOfOperatingSystem(error)) {
    printError(`fuel: ${error.message}: check the disk, and who owns its files: fuel doctor\n`);
    return EXIT_FAILED;
  }
  printError(`fuel: unexpected: ${error instanceof Error ? error.stack : String(error)}\n`);
  return EXIT_FAILED;
}

/** True for an error in reading or writing a file, which is no fault of the program. */
function isOfOperatingSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'errno' in error;
}

/** Prints an error with control characters escaped, since it may quote an argument, a file or a name. */
function printError(text: string): void {
  process.stderr.write(printable(withoutKeys(text)));
}

/** Ends the program if its output is lost. A reader that has read enough, such as `head`, is no error; a full disk is one. */
function endOnLostOutput(): void {
  process.stderr.on('error', () => undefined); // nobody can be told, and a service whose terminal is gone must still stop in order
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    const what =
      'standard output cannot be written: the printed output is incomplete, but nothing that was recorded is lost';
    process.exit(report(new FuelError('OUTPUT_LOST', what, { cause: error })));
  });
}
