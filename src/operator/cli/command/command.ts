import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { AccountWriter } from '../../../accounts/change-account.ts';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { type Config, retentionMs } from '../../../base/config/config.ts';
import { trimmed } from '../../../base/config/trimmed.ts';
import { loadConfig, openEngines } from '../../../engines/engines.ts';
import type { Engines } from '../../../service/engines/engines.ts';
import { assertNotMoved } from '../../../service/stores/moved-store.ts';
import { bindStore } from '../../../service/stores/store-binding.ts';
import { waitUntilApplied } from '../../serve/wait-applied.ts';
import { hasStore, noteMissing, requireStore } from './known-store.ts';
import {
  actor,
  flag,
  json,
  type Options,
  optionsOf,
  reason,
  type Values,
  usage as wrongUsage,
} from './options.ts';
import { abortOnInterrupt, Output } from './output.ts';

/** What a command works with. Engines open on first use and are closed when the command ends. */
export interface Session {
  readonly config: Config;
  readonly engines: Engines;
  readonly clock: Clock;
  readonly out: Output;
  /** Who runs which command. It goes into the metadata of every event. */
  readonly author: { readonly actor: string; readonly command: string };
  /** Aborts when the command is interrupted. A command that never asks for it is ended by the first signal. */
  readonly signal: AbortSignal;
  /** Records account events under the command's author. */
  writer(): AccountWriter;
}

/** The values of the arguments as their readers return them, or the texts if there are no readers. */
export type Arguments = readonly unknown[] | [];
/** A reader for each argument. Readers throw `USAGE`. */
export type Readers<A extends Arguments> = { readonly [Place in keyof A]: (text: string) => A[Place] };
export type NoOptions = Readonly<Record<never, never>>;

/** No value counts as 0. A `FuelError` ends the command with 1, or with 2 for wrong usage. */
export type ExitCode = Promise<number> | Promise<void>;

interface Usage<A extends Arguments, O extends Options> {
  /** The name and the arguments in commander's form: `open <id>`. */
  readonly usage: string;
  readonly summary: string;
  readonly example: string;
  readonly args?: Readers<A>;
  /** The words that an argument can be, by its name. Completion offers them; the command itself refuses others. */
  readonly choices?: Readonly<Record<string, readonly string[]>>;
  readonly options?: O;
}

interface Leaf<A extends Arguments, O extends Options> extends Usage<A, O> {
  readonly run: (args: A, options: Values<O>, command: Command) => ExitCode;
}

const CHANGES = { actor, wait: flag('wait until every live process has applied it') };
type CommandOptions = Partial<Values<typeof CHANGES> & Values<{ reason: typeof reason }>> &
  Values<{ json: typeof json }>;

export interface Definition<A extends Arguments, O extends Options> extends Usage<A, O> {
  /**
   * The command records events and takes --actor and --wait. Use a function if it depends on the options. The store must
   * exist, and is bound to the configuration first.
   */
  readonly changes?: true | ((options: Values<O>) => boolean);
  /** The command may create the store. If it records nothing, it works without one. */
  readonly begins?: true;
  /** Refuses wrong usage before a store is opened. */
  readonly check?: (args: A, options: Values<O>) => void | Promise<void>;
  /** The command takes --reason, and production requires it if this returns true: for what switches off, withdraws or accepts. */
  readonly asksWhy?: (options: Values<O>, args: A) => boolean;
  /** The command itself checks that the store exists and belongs to the configuration. */
  readonly ownStoreCheck?: true;
  readonly work: (
    session: Session,
    args: A,
    options: Values<O> & { readonly reason?: string | undefined },
  ) => ExitCode;
}

/** For `changes`: a dry run records nothing. */
export const unlessDryRun = ({ dryRun }: { readonly dryRun: true | undefined }): boolean => dryRun !== true;

/** Adds a command to the program, to a noun or to another command. */
export type Added = (parent: Command) => void;

/** The level above the commands of one noun. */
export function noun({
  name,
  summary,
  example,
  commands,
}: {
  readonly name: string;
  readonly summary: string;
  readonly example: string;
  readonly commands: readonly Added[];
}): Added {
  return (parent) => {
    const made = withExample(parent.command(name).description(summary), example);
    for (const add of commands) add(made);
  };
}

/** Ends a command's help with an example. */
function withExample(command: Command, example: string): Command {
  return command.addHelpText('after', `\nExample:\n  ${example}`);
}

/** A command that opens no store, with its subcommands. */
export function leaf<A extends Arguments = readonly string[], O extends Options = NoOptions>(
  { usage, summary, example, args: readers, choices = {}, options, run }: Leaf<A, O>,
  below: readonly Added[] = [],
): Added {
  return (parent) => {
    const command = withExample(parent.command(usage).description(summary), example);
    for (const option of optionsOf(options ?? {})) command.addOption(option);
    for (const argument of command.registeredArguments)
      argument.argChoices = [...(choices[argument.name()] ?? [])];
    refuseTwice(command);
    const refuseMissing = missingRefusal(command);
    const read: readonly ((text: string) => unknown)[] = readers ?? [];
    command.action(async () => {
      refuseMissing();
      const args = command.args.map((text, place) => {
        if (trimmed(text) === '') throw wrongUsage('An argument must not be empty.');
        return (read[place] ?? String)(text);
      });
      process.exitCode = (await run(args as unknown as A, command.opts() as Values<O>, command)) ?? 0;
    });
    for (const add of below) add(command);
  };
}

/** A command that works on the stores, with its subcommands. */
export function command<A extends Arguments = readonly string[], O extends Options = NoOptions>(
  definition: Definition<A, O>,
  below: readonly Added[] = [],
): Added {
  const { changes, asksWhy } = definition;
  const options = { ...definition.options, ...(asksWhy && { reason }), json, ...(changes && CHANGES) };
  const run: Leaf<A, Options>['run'] = (args, given, command) =>
    inSession(definition, args, { options: given as never, command });
  return leaf<A, Options>({ ...definition, options, run }, below);
}

/** Returns what refuses a missing option. Commander does so before it names an unknown option, which may be the one misspelt. */
function missingRefusal(command: Command): () => void {
  const required = command.options.filter(({ mandatory }) => mandatory);
  for (const option of required) option.mandatory = false;
  return () => {
    const missing = required.find((option) => command.getOptionValue(option.attributeName()) === undefined);
    if (missing === undefined) return;
    command.error(`error: required option '${missing.flags}' not specified`, { exitCode: 2 });
  };
}

/** Refuses a second value of a single-value option, which would silently replace the first. */
function refuseTwice(command: Command): void {
  for (const option of command.options) {
    if ((!option.required && !option.optional) || Array.isArray(option.defaultValue)) continue;
    let times = 0;
    command.on(`option:${option.name()}`, () => {
      times += 1;
      if (times === 2) command.error(`error: option '--${option.name()}' was given twice`, { exitCode: 2 });
    });
  }
}

async function inSession<A extends Arguments, O extends Options>(
  definition: Definition<A, O>,
  args: A,
  { options, command }: { readonly options: Values<O> & CommandOptions; readonly command: Command },
): Promise<number> {
  const { changes, begins, check, ownStoreCheck, asksWhy, work } = definition;
  const config = loadConfig(process.env, 'command');
  if (requiresReason(config) && !options.reason && asksWhy?.(options, args))
    throw wrongUsage('production requires a reason for the auditors: add --reason "…"');
  await check?.(args, options);
  const records = typeof changes === 'function' ? changes(options) : changes === true;
  const missing: string[] = [];
  const onMissing = records || ownStoreCheck ? undefined : (file: string) => missing.push(file);
  const engines = await openEngines(config, systemClock, { onMissing });
  try {
    const session = sessionOf(config, engines, { options, command });
    if (records) await begin(session, begins);
    else if (!begins && !ownStoreCheck) requireStore(config, engines);
    const ended = work(session, args, options).finally(() => session.out.end());
    const exitCode = (await ended.finally(() => noteMissing(missing, session))) ?? 0;
    if (options.wait) await wait(session).finally(() => session.out.end());
    return exitCode;
  } finally {
    await engines.close();
  }
}

function sessionOf(
  config: Config,
  engines: Engines,
  { options, command }: { readonly options: CommandOptions; readonly command: Command },
): Session {
  const osUser = loginName(config);
  const author = { actor: options.actor ?? osUser, osUser, command: commandName(command) };
  let signal: AbortSignal | undefined;
  return {
    ...{ config, engines, clock: systemClock, out: new Output(options.json === true), author },
    get signal() {
      signal ??= abortOnInterrupt();
      return signal;
    },
    writer: () => ({ store: engines.store(), clock: systemClock, author }),
  };
}

/** Prepares the store for recording: it must exist or may begin now, must not have been moved, and is bound to the configuration. */
async function begin({ config, engines, out }: Session, begins: true | undefined): Promise<void> {
  const exists = hasStore(config, engines);
  await assertNotMoved({ ...config, ...engines }, exists ? engines.store() : undefined);
  if (!begins) requireStore(config, engines);
  if (!exists) out.note(`created a new store in ${resolve(config.FUEL_DATA_DIR)}`);
  await bindStore(engines.store(), config, { clock: systemClock });
}

/** Waits until every live process has applied what the command recorded. */
async function wait({ engines, out }: Session): Promise<void> {
  const position = await engines.store().head();
  const onProgress = (text: string): void => out.progress(text);
  const outcome = await waitUntilApplied({
    ...{ coordination: engines.coordination(), view: engines.view(), position, onProgress },
  });
  if (outcome === 'no process') out.note('no service is running: nothing to wait for');
}

/** The command's name for the metadata of events: `fuel key issue`. Arguments are left out, since they may be personal. */
function commandName(command: Command): string {
  const names: string[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent) names.unshift(at.name());
  return names.join(' ');
}

/** True if a reason is required for what switches off, withdraws or accepts. */
export function requiresReason({ FUEL_ENVIRONMENT: environment }: Config): boolean {
  return environment === 'production';
}

/** The stores and settings that decide which deliveries a transaction calls for. */
export function deliveryContext({ config, engines, clock }: Session) {
  return {
    ...{ store: engines.store(), queue: engines.queue(), clock },
    ...{ environment: config.FUEL_ENVIRONMENT, retentionMs: retentionMs(config) },
  };
}

/** The caller's name on this machine. With `sudo` or in a container that is not the user whom the program runs as. */
function loginName({ FUEL_OPERATOR_LOGIN: given }: Config): string {
  const name = given ?? process.env.SUDO_USER;
  if (name) return name;
  try {
    return userInfo().username;
  } catch {
    // A container may run under a user id that has no name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
