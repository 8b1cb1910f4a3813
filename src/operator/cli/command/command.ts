import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { AccountWriter } from '../../../accounts/change-account.ts';
import { assertNotMoved } from '../../../accounts/moved-store.ts';
import { bindStore } from '../../../accounts/store-binding.ts';
import { systemClock } from '../../../base/clock.ts';
import type { Config } from '../../../base/config/config.ts';
import { loadConfig, openEngines } from '../../../engines/engines.ts';
import type { Engines } from '../../../service/engines/engines.ts';
import { waitUntilApplied } from '../../serve/wait-applied.ts';
import { hasStore, requireStore } from './known-store.ts';
import { progressLine } from './long-work.ts';
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
import { Output } from './output.ts';

/** What a command works with. Engines open on first use and are closed when the command ends. */
export interface Session {
  readonly config: Config;
  readonly engines: Engines;
  readonly clock: typeof systemClock;
  readonly out: Output;
  /** Who runs which command: goes into the metadata of every event. */
  readonly author: { readonly actor: string; readonly command: string };
  /** Records with the command's author. */
  writer(): AccountWriter;
}

/** What readers make of arguments; without readers, those that are given as they are. */
export type Arguments = readonly unknown[] | [];
/** Each reads one argument. They throw `USAGE`. */
export type Readers<A extends Arguments> = { readonly [Place in keyof A]: (text: string) => A[Place] };
export type NoOptions = Readonly<Record<never, never>>;

/** 0 where none is given. A `FuelError` ends with 1, or 2 for wrong usage. */
export type ExitCode = Promise<number> | Promise<void>;

interface Usage<A extends Arguments, O extends Options> {
  /** Name and arguments in commander's form: `open <id>`. */
  readonly usage: string;
  readonly summary: string;
  readonly example: string;
  readonly args?: Readers<A>;
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
   * Records events: takes --actor and --wait. A function if only some of its options make it record. The store is bound to
   * the configuration at the start, and has to be there.
   */
  readonly changes?: true | ((options: Values<O>) => boolean);
  /** Makes a store where there is none, and without recording works without one. */
  readonly begins?: true;
  /** Refuses what makes no sense before a store is opened. */
  readonly check?: (args: A, options: Values<O>) => void | Promise<void>;
  /** Takes --reason, which production requires where this holds: of what switches off, withdraws or accepts. */
  readonly asksWhy?: (options: Values<O>, args: A) => boolean;
  /** What it records is to be seen by customers: with --wait it fails where no process writes the view. */
  readonly shown?: true;
  /** The command itself checks that the store exists and belongs to the configuration. */
  readonly ownStoreCheck?: true;
  readonly work: (
    session: Session,
    args: A,
    options: Values<O> & { readonly reason?: string | undefined },
  ) => ExitCode;
}

/** Adds itself to the program, to a noun or to another command. */
export type Added = (parent: Command) => void;

/** The level above the commands about one thing. */
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

/** A command that opens nothing itself, with those below it. */
export function leaf<A extends Arguments = readonly string[], O extends Options = NoOptions>(
  { usage, summary, example, args: readers, options, run }: Leaf<A, O>,
  below: readonly Added[] = [],
): Added {
  return (parent) => {
    const command = withExample(parent.command(usage).description(summary), example);
    for (const option of optionsOf(options ?? {})) command.addOption(option);
    refuseTwice(command);
    const read: readonly ((text: string) => unknown)[] = readers ?? [];
    command.action(async () => {
      const args = command.args.map((text, place) => (read[place] ?? String)(text));
      process.exitCode = (await run(args as unknown as A, command.opts() as Values<O>, command)) ?? 0;
    });
    for (const add of below) add(command);
  };
}

/** A command that works on the stores, with those below it. */
export function command<A extends Arguments = readonly string[], O extends Options = NoOptions>(
  definition: Definition<A, O>,
  below: readonly Added[] = [],
): Added {
  const {
    work: _,
    ownStoreCheck: __,
    shown: ___,
    begins: ____,
    check: _____,
    changes,
    asksWhy,
    ...usage
  } = definition;
  const options = { ...usage.options, ...(asksWhy && { reason }), json, ...(changes && CHANGES) };
  const run: Leaf<A, Options>['run'] = (args, given, command) =>
    inSession(definition, args, { options: given as never, command });
  return leaf<A, Options>({ ...usage, options, run }, below);
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
  { changes, begins, check, shown, ownStoreCheck, asksWhy, work }: Definition<A, O>,
  args: A,
  { options, command }: { readonly options: Values<O> & CommandOptions; readonly command: Command },
): Promise<number> {
  const config = loadConfig(process.env, 'command');
  if (requiresReason(config) && !options.reason && asksWhy?.(options, args))
    throw wrongUsage('say why with --reason "…", for the auditors: production requires it');
  await check?.(args, options);
  const clock = systemClock;
  const engines = await openEngines(config, clock);
  const osUser = loginName(config);
  const author = { actor: options.actor ?? osUser, osUser, command: commandName(command) };
  const out = new Output(options.json === true);
  const records = typeof changes === 'function' ? changes(options) : changes === true;
  const writer = (): AccountWriter => ({ store: engines.store(), clock, author });
  try {
    if (records) await begin({ config, engines, out }, { begins, ownStoreCheck });
    else if (!begins && !ownStoreCheck) requireStore(config, engines);
    const session = { config, engines, clock, out, author, writer };
    const exitCode = (await work(session, args, options).finally(() => out.end())) ?? 0;
    const isApplied = !options.wait || (await wait(session, shown));
    return isApplied ? exitCode : 1;
  } finally {
    await engines.close();
  }
}

/** What a command that records works on: the configuration's own store, that was not moved. */
async function begin(
  { config, engines, out }: Pick<Session, 'config' | 'engines' | 'out'>,
  { begins, ownStoreCheck }: { readonly begins: true | undefined; readonly ownStoreCheck: true | undefined },
): Promise<void> {
  const exists = hasStore(config, engines);
  await assertNotMoved({ ...config, ...engines }, exists ? engines.store() : undefined);
  if (ownStoreCheck) return;
  if (!begins) requireStore(config, engines);
  if (!exists) out.note(`a new store was made in ${resolve(config.FUEL_DATA_DIR)}`);
  await bindStore(engines.store(), config, { clock: systemClock });
}

/** False where customers do not see what they should. */
async function wait({ engines, out }: Session, shown: true | undefined): Promise<boolean> {
  const position = await engines.store().head();
  const coordination = engines.coordination();
  const progress = progressLine();
  const options = { coordination, view: engines.view(), position, onProgress: progress.show };
  const outcome = await waitUntilApplied(options).finally(() => progress.end());
  if (outcome === 'no process') out.note('no service is running: nothing to wait for');
  // Where a process writes the view, it was waited for.
  const shownUpTo = (await engines.view().checkpoint())?.position ?? -1;
  if (outcome === 'no process' || !shown || shownUpTo >= position) return true;
  out.note('recorded, but no running process has the role projector: customers see it when one runs');
  return false;
}

/** `fuel key issue`, as it goes into an event's metadata: never the arguments, which may be personal. */
function commandName(command: Command): string {
  const names: string[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent) names.unshift(at.name());
  return names.join(' ');
}

/** Whether what switches off, withdraws or accepts has to say why. */
export function requiresReason({ FUEL_ENVIRONMENT: environment }: Config): boolean {
  return environment === 'production';
}

/** Who called, as this machine knows it; behind `sudo` or in a container not the user whom the program runs as. */
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
