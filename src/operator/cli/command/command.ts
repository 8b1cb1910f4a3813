import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import type { Command, CommandUnknownOpts, OptionValues } from '@commander-js/extra-typings';
import type { AccountWriter } from '../../../accounts/change-account.ts';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { type Config, retentionMs } from '../../../base/config/config.ts';
import { loadConfig, openEngines } from '../../../engines/engines.ts';
import type { Engines } from '../../../service/engines/engines.ts';
import { assertNotMoved } from '../../../service/stores/moved-store.ts';
import { bindStore } from '../../../service/stores/store-binding.ts';
import { waitUntilApplied } from '../../serve/wait-applied.ts';
import { hasStore, noteMissing, requireStore } from './known-store.ts';
import { ACTOR_OPTION, JSON_OPTION, REASON, readText, usage as wrongUsage } from './options.ts';
import { abortOnInterrupt, Output } from './output.ts';
import { makeStrict, missingRefusal, withExample } from './syntax.ts';

/** The context in which a command runs. Engines open on first use and are closed when the command ends. */
export interface Session {
  readonly config: Config;
  readonly engines: Engines;
  readonly clock: Clock;
  readonly out: Output;
  /** The actor and the command. They go into the metadata of every event. */
  readonly author: { readonly actor: string; readonly command: string };
  /** Aborts when the command is interrupted. A command that never asks for it is ended by the first signal. */
  readonly signal: AbortSignal;
  /** Records account events under the command's author. */
  writer(): AccountWriter;
}

export type NoOptions = Readonly<Record<never, never>>;

/** No value counts as 0. A `FuelError` ends the command with 1, or with 2 for wrong usage. */
export type ExitCode = Promise<number> | Promise<void>;

interface Usage<A extends unknown[], O extends OptionValues> {
  readonly name: string;
  readonly summary: string;
  readonly example: string;
  /** Adds the command's own arguments and options. */
  readonly syntax?: (bare: Command) => Command<A, O>;
}

interface Leaf<A extends unknown[], O extends OptionValues> extends Usage<A, O> {
  readonly run: (args: A, options: O, command: CommandUnknownOpts) => ExitCode;
}

/** The values of the options that commands have in common. */
interface CommonOptions {
  readonly json?: true;
  readonly csv?: true;
  readonly follow?: true;
  readonly reason?: string;
  readonly actor?: string;
  readonly wait?: true;
}

export interface Definition<A extends unknown[], O extends OptionValues> extends Usage<A, O> {
  /**
   * The command records events and takes --actor and --wait. Use a function if it depends on the options. The store must
   * exist, and is bound to the configuration first.
   */
  readonly changes?: true | ((options: O) => boolean);
  /** The command may create the store. If it records nothing, it works without one. */
  readonly begins?: true;
  /** Refuses wrong usage before a store is opened. */
  readonly check?: (args: A, options: O) => void | Promise<void>;
  /**
   * The command takes --reason, and production requires it if this returns true: for what switches off, withdraws or accepts.
   * `reasonFor` says in the help when that is, unless it always is.
   */
  readonly asksWhy?: (options: O, args: A) => boolean;
  readonly reasonFor?: string;
  /** The command prints a list of these. With `csv` it takes --csv, which prints these members. */
  readonly lists?: { readonly what: string; readonly csv?: (options: O) => readonly string[] };
  /** The command itself checks that the store exists and belongs to the configuration. */
  readonly ownStoreCheck?: true;
  readonly work: (session: Session, args: A, options: O & Pick<CommonOptions, 'reason'>) => ExitCode;
}

/** For `changes`: a dry run records nothing. */
export const unlessDryRun = ({ dryRun }: { readonly dryRun?: boolean }): boolean => dryRun !== true;

/** Adds a command to the program, to a noun or to another command. */
export type Added = (parent: CommandUnknownOpts) => void;

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

/** A command that opens no store, with its subcommands. */
export function leaf<A extends unknown[] = [], O extends OptionValues = NoOptions>(
  { name, summary, example, syntax, run }: Leaf<A, O>,
  below: readonly Added[] = [],
): Added {
  return (parent) => {
    const bare = withExample(parent.command(name).description(summary), example);
    const command = (syntax === undefined ? bare : syntax(bare)) as CommandUnknownOpts;
    makeStrict(command);
    const refuseMissing = missingRefusal(command);
    command.action(async () => {
      refuseMissing();
      process.exitCode = (await run(command.processedArgs as A, command.opts() as O, command)) ?? 0;
    });
    for (const add of below) add(command);
  };
}

/** A command that works on the stores, with its subcommands. */
export function command<A extends unknown[] = [], O extends OptionValues = NoOptions>(
  definition: Definition<A, O>,
  below: readonly Added[] = [],
): Added {
  const { changes, asksWhy, reasonFor, lists, syntax } = definition;
  const withCommon = (bare: Command): CommandUnknownOpts => {
    const own = (syntax === undefined ? bare : syntax(bare)) as CommandUnknownOpts;
    if (asksWhy) own.option('--reason <reason>', reasonSummary(reasonFor), readText);
    own.option(...JSON_OPTION);
    if (lists?.csv) own.option('--csv', 'print CSV (RFC 4180) with a header; formulas are escaped');
    if (!changes) return own;
    return own
      .option(...ACTOR_OPTION)
      .option('--wait', 'wait until every running process has applied the change') as CommandUnknownOpts;
  };
  return leaf(
    {
      ...definition,
      syntax: withCommon,
      run: (args, options, made) =>
        inSession(definition, args as A, { options: options as O & CommonOptions, command: made }),
    },
    below,
  );
}

function reasonSummary(when: string | undefined): string {
  return `${REASON}; required in production${when === undefined ? '' : ` ${when}`}`;
}

async function inSession<A extends unknown[], O extends OptionValues>(
  definition: Definition<A, O>,
  args: A,
  { options, command }: { readonly options: O & CommonOptions; readonly command: CommandUnknownOpts },
): Promise<number> {
  const { changes, begins, check, ownStoreCheck, asksWhy, lists, work } = definition;
  const config = loadConfig(process.env, 'command');
  if (requiresReason(config) && !options.reason && asksWhy?.(options, args))
    throw wrongUsage('--reason is required in production, for the auditors');
  if (options.json && options.csv) throw wrongUsage('--json and --csv exclude each other');
  await check?.(args, options);
  const records = typeof changes === 'function' ? changes(options) : changes === true;
  const missing: string[] = [];
  const onMissing = records || ownStoreCheck ? undefined : (file: string) => missing.push(file);
  const engines = await openEngines(config, systemClock, { onMissing });
  try {
    const session = sessionOf(config, engines, { options, command, csv: lists?.csv?.(options) });
    if (records) await begin(session, begins);
    else if (!begins && !ownStoreCheck) requireStore(config, engines);
    const ended = work(session, args, options).finally(() => session.out.end());
    const exitCode = (await ended.finally(() => noteMissing(missing, session))) ?? 0;
    if (lists && exitCode === 0 && session.out.rows === 0 && !options.follow) {
      await session.out.header();
      session.out.note(`No ${lists.what} found`);
    }
    if (options.wait) await wait(session).finally(() => session.out.end());
    return exitCode;
  } finally {
    await engines.close();
  }
}

function sessionOf(
  config: Config,
  engines: Engines,
  {
    options,
    command,
    csv,
  }: {
    readonly options: CommonOptions;
    readonly command: CommandUnknownOpts;
    readonly csv: readonly string[] | undefined;
  },
): Session {
  const osUser = loginName(config);
  const author = { actor: options.actor ?? osUser, osUser, command: commandName(command) };
  let signal: AbortSignal | undefined;
  return {
    config,
    engines,
    clock: systemClock,
    author,
    out: new Output(options.json === true, { csv: options.csv && csv }),
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
  if (!exists) out.note(`Created a new store in ${resolve(config.FUEL_DATA_DIR)}`);
  await bindStore(engines.store(), config, { clock: systemClock });
}

/** Waits until every live process has applied what the command recorded. */
async function wait({ engines, out }: Session): Promise<void> {
  const position = await engines.store().head();
  const onProgress = (text: string): void => out.progress(text);
  const outcome = await waitUntilApplied({
    coordination: engines.coordination(),
    view: engines.view(),
    accounts: engines.accounts(),
    position,
    onProgress,
  });
  if (outcome === 'no process') out.note('No service is running, so there is nothing to wait for');
}

/** The command's name for the metadata of events: `fuel key issue`. Arguments are left out, since they may be personal. */
function commandName(command: CommandUnknownOpts): string {
  const names: string[] = [];
  for (let at: CommandUnknownOpts | null = command; at !== null; at = at.parent) names.unshift(at.name());
  return names.join(' ');
}

/** True if a reason is required for what switches off, withdraws or accepts. */
export function requiresReason({ FUEL_ENVIRONMENT: environment }: Config): boolean {
  return environment === 'production';
}

/** The stores and settings that decide which deliveries a transaction calls for. */
export function deliveryContext({ config, engines, clock }: Session) {
  return {
    store: engines.store(),
    queue: engines.queue(),
    clock,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: retentionMs(config),
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
