import { once } from 'node:events';
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { assertNotMoved } from '../../../accounts/moved-store.ts';
import { systemClock } from '../../../base/clock.ts';
import { type Config, loadConfig } from '../../../base/config/config.ts';
import { FuelError } from '../../../base/errors.ts';
import { printable, printableLine, withoutKeys } from '../../../base/printable.ts';
import { openEngines } from '../../../engines/engines.ts';
import { type Column, headsText, rowText, type Section, sectionsText } from '../../answers/columns.ts';
import { waitUntilApplied } from '../../serve/wait-applied.ts';
import { type CommandEngines, commandEngines, hasStore } from './command-engines.ts';
import { nameOption } from './options.ts';
import { progressLine } from './progress.ts';

/** What a command works with. Engines open on first use and are closed when the command ends. */
export interface Session {
  readonly config: Config;
  readonly engines: CommandEngines;
  readonly clock: typeof systemClock;
  readonly out: Output;
  /** Who runs which command: goes into the metadata of every event. */
  readonly author: { readonly actor: string; readonly command: string };
}

export interface Output {
  readonly json: boolean;
  /** Prints one JSON document with --json, the text otherwise, on standard output. */
  result(document: unknown, text: string): void;
  /**
   * As `result`, for a document with a secret that is shown only once. Rejects with `OUTPUT_LOST` if it could not be
   * written; `lost` says what is lost and what to do.
   */
  secret(document: unknown, text: string, lost: string): Promise<void>;
  /** Prints one document as `result`, or what is shown about it. */
  answer(document: unknown, sections: readonly Section[]): void;
  /** Prints one line of a list on standard output, as `result`; resolves when the reader can take more. */
  line(document: unknown, text: string): Promise<void>;
  /** As `line`, with a document's columns below the heads of the first one. */
  row<D>(columns: readonly Column<D>[], document: D): Promise<void>;
  /** One line on standard error: notes and faults, never part of the result. */
  note(line: string): void;
}

export interface CommandOptions {
  readonly json?: true;
  readonly actor?: string;
  readonly wait?: true;
}

/** A command's work. Returns the exit code where it is not 0. Throws `FuelError` to end with 1. */
export type Work<O> = (session: Session, args: readonly string[], options: O) => Promise<number>;

export interface Definition<O> {
  /** Name and arguments in commander's form: `open <id>`. */
  readonly usage: string;
  readonly summary: string;
  readonly example: string;
  /** Adds the command's own options. */
  readonly options?: (command: Command) => Command;
  /** Records events: takes --actor and --wait. A function if only some of its options make it record. */
  readonly changes?: true | ((options: O) => boolean);
  /** The command itself checks that the store exists and belongs to the configuration. */
  readonly ownStoreCheck?: true;
  readonly work: Work<O & CommandOptions>;
}

/** Adds a noun: the level above the commands about one thing. */
export function addNoun(
  parent: Command,
  { name, summary, example }: { readonly name: string; readonly summary: string; readonly example: string },
): Command {
  return withExample(parent.command(name).description(summary), example);
}

/** Ends a command's help with an example. */
function withExample(command: Command, example: string): Command {
  return command.addHelpText('after', `\nExample:\n  ${example}`);
}

/** Adds a leaf command with the options that every command has. */
export function addCommand<O>(parent: Command, definition: Definition<O>): Command {
  const command = parent.command(definition.usage).description(definition.summary);
  definition.options?.(command);
  command.option('--json', 'print one JSON document (lists: one a line) and nothing else');
  if (definition.changes) {
    command.option('--actor <name>', 'who does this (default: the login name)', nameOption);
    command.option('--wait', 'wait until every live process has applied it');
  }
  refuseTwice(command);
  return withExample(command, definition.example).action(async () => {
    const args = command.args.map(String);
    process.exitCode = await run(definition, command, args, command.opts());
  });
}

/** Refuses a second value of a single-value option, which would silently replace the first. */
function refuseTwice(command: Command): void {
  for (const option of command.options) {
    if (!option.required && !option.optional) continue;
    let times = 0;
    command.on(`option:${option.name()}`, () => {
      times += 1;
      if (times === 2) command.error(`error: option '--${option.name()}' was given twice`, { exitCode: 2 });
    });
  }
}

async function run<O>(
  definition: Definition<O>,
  command: Command,
  args: readonly string[],
  options: O & CommandOptions,
): Promise<number> {
  const config = loadConfig(process.env, 'command');
  const opened = await openEngines(config, systemClock);
  const osUser = loginName();
  const author = { actor: options.actor ?? osUser, osUser, command: commandName(command) };
  const out = output(options.json === true);
  const { changes, ownStoreCheck } = definition;
  const records = typeof changes === 'function' ? changes(options) : changes === true;
  const engines = ownStoreCheck
    ? { ...opened, bind: async () => undefined }
    : commandEngines(opened, { config, records, note: out.note });
  try {
    if (records) await assertNotMoved(config, hasStore(config) ? opened.store() : undefined);
    const session = { config, engines, clock: systemClock, out, author };
    const exitCode = await definition.work(session, args, options);
    if (options.wait) await wait(session);
    return exitCode;
  } finally {
    await engines.close();
  }
}

async function wait({ engines, out }: Session): Promise<void> {
  const position = await engines.store().head();
  const coordination = engines.coordination();
  const progress = progressLine();
  const options = { coordination, view: engines.view(), position, onProgress: progress.show };
  const outcome = await waitUntilApplied(options).finally(() => progress.end());
  if (outcome === 'no process') out.note('no service is running: nothing to wait for');
}

export function output(json: boolean): Output {
  const textOf = (document: unknown, text: string): string =>
    `${printable(json ? JSON.stringify(document) : text)}\n`;
  const result = (document: unknown, text: string): void => void process.stdout.write(textOf(document, text));
  const line = async (document: unknown, text: string): Promise<void> => {
    const shown = printableLine(json ? JSON.stringify(document) : text);
    if (!process.stdout.write(`${shown}\n`)) await once(process.stdout, 'drain');
  };
  let hasHeads = json;
  return {
    json,
    result,
    secret: (document, text, lost) => writeSecret(textOf(document, text), lost),
    answer: (document, sections) => result(document, json ? '' : sectionsText(sections)),
    line,
    async row(columns, document) {
      if (!hasHeads) await line(undefined, headsText(columns));
      hasHeads = true;
      await line(document, json ? '' : rowText(columns, document));
    },
    note: (line) => void process.stderr.write(`${printableLine(withoutKeys(line))}\n`),
  };
}

/** Aborts at the first SIGINT or SIGTERM, so that the command can stop cleanly; a second one ends the process. */
export function abortOnInterrupt(): AbortSignal {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted.abort());
  return interrupted.signal;
}

function writeSecret(text: string, lost: string): Promise<void> {
  const { stdout } = process;
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void => reject(new FuelError('OUTPUT_LOST', lost, { cause }));
    // The listeners that others added end the process quietly when the pipe is closed.
    const others = stdout.listeners('error') as ((error: Error) => void)[];
    stdout.removeAllListeners('error').on('error', fail);
    stdout.write(text, (error) => {
      if (error) return fail(error);
      stdout.off('error', fail);
      for (const other of others) stdout.on('error', other);
      resolve();
    });
  });
}

/** `fuel key issue`, as it goes into an event's metadata: never the arguments, which may be personal. */
function commandName(command: Command): string {
  const names: string[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent) names.unshift(at.name());
  return names.join(' ');
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a user id that has no name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
