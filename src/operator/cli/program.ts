import { Command, CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings';
import packageJson from '../../../package.json' with { type: 'json' };
import { type ErrorCode, FuelError } from '../../base/errors.ts';
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
    process.exitCode = report(error, { json: argv.includes('--json') });
  }
}

export function createProgram(): CommandUnknownOpts {
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
    .configureOutput({ writeErr: printError, outputError: () => undefined }); // `report` prints errors
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

/** Prints an error in one style, `fuel: what is wrong. What to do`, or as a document with --json. Returns the exit code. */
function report(error: unknown, { json }: { readonly json: boolean }): number {
  const fault = faultOf(error);
  if (fault === undefined) return 0;
  const { code, exitCode } = fault;
  const message = fault.message.replace(/^[a-z](?=[a-z']* )/, (letter) => letter.toUpperCase());
  // The documents list the states of the stores by their codes.
  const named = code?.startsWith('STORE_') ? ` (${code})` : '';
  printError(`${json && code ? JSON.stringify({ code, message }) : `fuel: ${message}${named}`}\n`);
  return exitCode;
}

interface Fault {
  /** The code in docs/errors.md; `undefined` for what has none. */
  readonly code?: ErrorCode;
  readonly message: string;
  readonly exitCode: number;
}

/** `undefined` if it is no fault: help and the version are printed already. */
function faultOf(error: unknown): Fault | undefined {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return undefined;
    return { code: 'USAGE', message: ofCommander(error.message), exitCode: EXIT_USAGE };
  }
  if (error instanceof FuelError) {
    const { code, cause: known, message } = error;
    const isSaid = !(known instanceof Error) || message.includes(known.message.trim());
    const cause = isSaid ? '' : ` (${known.message})`;
    return { code, message: `${message}${cause}`, exitCode: code === 'USAGE' ? EXIT_USAGE : EXIT_FAILED };
  }
  if (error instanceof DOMException && error.name === 'AbortError')
    return { message: 'Interrupted', exitCode: EXIT_FAILED };
  if (isOfOperatingSystem(error))
    return {
      message: `${error.message}. Check the disk and the owner of its files with \`fuel doctor\``,
      exitCode: EXIT_FAILED,
    };
  return {
    message: `unexpected: ${error instanceof Error ? error.stack : String(error)}`,
    exitCode: EXIT_FAILED,
  };
}

/** Commander's `error: unknown option '--acount'` and `(Did you mean --account?)` as one line of the program's style. */
function ofCommander(message: string): string {
  return message.replace(/^error: /, '').replace(/\n\((.*)\)$/, '. $1');
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
      'standard output cannot be written. What was printed is incomplete, but nothing that was recorded is lost';
    process.exit(report(new FuelError('OUTPUT_LOST', what, { cause: error }), { json: false }));
  });
}
