import { readFileSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { FuelError } from '../errors.ts';
import { printable, withoutKeys } from '../printable.ts';
import { addAccountCommands } from './commands/account-commands.ts';
import { addAuditCommand } from './commands/audit-command.ts';
import { addConfigCommands } from './commands/config-commands.ts';
import { addDeliveryCommands } from './commands/delivery-commands.ts';
import { addKeyCommands } from './commands/key-commands.ts';
import { addProjectionCommands } from './commands/projection-commands.ts';
import { addServeCommand } from './commands/serve-command.ts';
import { addStoreCommands } from './commands/store-commands.ts';
import { addTransactionCommands } from './commands/transaction-commands.ts';
import { addVerifyCommand } from './commands/verify-command.ts';
import { addWebhookCommands } from './commands/webhook-commands.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs one command line; sets `process.exitCode`: 0 done, 1 refused or failed, 2 wrong usage. */
export async function main(argv: readonly string[]): Promise<void> {
  endQuietlyOnClosedPipe();
  try {
    await createProgram().parseAsync([...argv]);
  } catch (error) {
    process.exitCode = report(error);
  }
}

export function createProgram(): Command {
  const program = new Command('fuel')
    .description('Fuel transaction integration service: run it, provision customers, import, audit.')
    .version(version())
    .addHelpText(
      'after',
      '\nExample:\n  fuel serve\n\nEvery command explains itself: fuel <noun> <verb> --help',
    )
    .exitOverride()
    .enablePositionalOptions() // `parked show 7 --json`: the option is that of show, though parked has it too
    .configureOutput({ writeErr: complain, outputError: (text, write) => write(text) });
  addServeCommand(program);
  addAccountCommands(program);
  addKeyCommands(program);
  addWebhookCommands(program);
  addDeliveryCommands(program);
  addTransactionCommands(program);
  addProjectionCommands(program);
  addVerifyCommand(program);
  addAuditCommand(program);
  addStoreCommands(program);
  addConfigCommands(program);
  return program;
}

function report(error: unknown): number {
  if (error instanceof InvalidArgumentError) {
    complain(`fuel: USAGE: ${error.message}\n`);
    return EXIT_USAGE;
  }
  // Help, version and commander's own complaints have been printed by commander.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  if (error instanceof FuelError) {
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
    complain(`fuel: ${error.code}: ${error.message}${cause}\n`); // docs/errors.md goes by the code
    return error.code === 'USAGE' ? EXIT_USAGE : EXIT_FAILED;
  }
  complain(`fuel: unexpected: ${error instanceof Error ? error.stack : String(error)}\n`);
  return EXIT_FAILED;
}

/** A message may quote an argument, a file or a name. */
function complain(text: string): void {
  process.stderr.write(printable(withoutKeys(text)));
}

/** `fuel audit | head`: the reader has what it wants. */
function endQuietlyOnClosedPipe(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
