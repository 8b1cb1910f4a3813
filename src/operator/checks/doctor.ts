import { catchUpAccounts } from '../../accounts/rows/catch-up.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { reasonOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { orLate } from '../../base/pause.ts';
import { world } from '../../base/world.ts';
import { registry as REGISTRY } from '../../engines/engines.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { operationsOf } from '../../event-store/operations.ts';
import type { Engines } from '../../service/engines/engines.ts';
import type { Tables } from '../../tables/tables.ts';
import { type Check, type DoctorFacts, type Finding, findingOf, notChecked, right, wrong } from './check.ts';
import { checksOf } from './checks.ts';
import { asOwnerOf } from './data-directory.ts';
import { type FactSources, type Facts, factReads } from './facts.ts';

const LIMIT_MS = 8_000;
const MIN_SECRET_CHARACTERS = 4;

/** A check as doctor prints it. */
export interface CheckLine {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  /** The remedy, as a command or an instruction; `null` if nothing is wrong. */
  readonly do: string | null;
}

/**
 * Looks at everything that the service depends on, and says what is wrong and what to do. It makes no store and changes
 * nothing, works with an invalid configuration, and takes some seconds even if nothing answers. No secret is in it.
 */
export async function examine(
  env: DoctorFacts['env'],
  clock: Clock,
  registry = REGISTRY,
): Promise<CheckLine[]> {
  const { config, faulty, secrets } = registry.inspectConfig(env);
  // A missing store is read as empty, so that none is created.
  const engines = await registry.openEngines(config, clock, { onMissing: () => undefined });
  const facts = { env, registry, ...factsOnce({ config, clock, engines }) };
  const checks = checksOf(registry.servers).filter(
    (check) => check.madeBy !== 'overview' && (!('isInUse' in check) || check.isInUse?.(facts) !== false),
  );
  const settingsOfStores = [...registry.servers.map(({ setting }) => setting), 'FUEL_ENVIRONMENT'];
  const causes = checks.filter(({ isCause }) => isCause).map(({ name }) => name);
  const repairFirst = `first repair what the checks ${causes.slice(0, -1).join(', ')} and ${causes.at(-1)} name`;
  const make = (check: Check): Promise<Finding> | Finding => {
    const { stores, settings = [], remedy = repairFirst } = check;
    const missing = [...(stores ? settingsOfStores : []), ...settings].filter((name) => faulty.has(name));
    return missing.length > 0
      ? right(`not checked: ${missing.join(', ')} is not valid`)
      : within(LIMIT_MS, remedy, () => findingOf(check, facts));
  };
  try {
    const made = await Promise.all(
      checks.map(async (check) => ({ check, line: lineOf(check.name, await make(check)) })),
    );
    const failed = made.filter(({ line }) => !line.ok).map(({ check }) => check);
    const failedCauses = failed.filter(({ isCause }) => isCause).map(({ name }) => name);
    const causesOf = ({ follows = [] }: Check, { do: remedy }: CheckLine): readonly string[] =>
      remedy === repairFirst
        ? failedCauses
        : failed.map(({ name }) => name).filter((name) => follows.includes(name));
    return made.map(({ check, line }) => {
      // A check that failed because of another problem is no second one.
      const because = line.ok ? [] : causesOf(check, line);
      return because.length > 0 ? lineOf(check.name, notChecked(because)) : withoutSecrets(line, secrets);
    });
  } finally {
    await engines.close();
  }
}

/** Facts that are read once. A store that a start would create or update is not opened. */
function factsOnce(given: {
  readonly config: Config;
  readonly clock: Clock;
  readonly engines: Engines;
}): Facts {
  const { engines, clock } = given;
  const find: FactSources['find'] = async (name) => {
    if ((await engines.state(name)) !== 'current') return undefined;
    return engines[name]() as ReturnType<Engines[typeof name]>;
  };
  const store = async () => {
    const found = await find('store');
    if (found === undefined) throw new Error('there is no event store, which the check did not require');
    return found;
  };
  const rows = once(async () => currentRows(engines, await store(), clock));
  const sources = { ...given, find, store, rows };
  const reads = Object.entries(factReads(sources)).map(([name, read]) => [name, once<unknown>(read)]);
  return { ...sources, ...Object.fromEntries(reads) };
}

/** Embedded rows that are not there are made in memory. A store without a name has none. */
async function currentRows(engines: Engines, store: EventStore, clock: Clock): Promise<Tables | undefined> {
  const state = await engines.state('accounts');
  const isReadable = state === 'current' || (state === 'missing' && engines.embedded.includes('accounts'));
  if (!isReadable || (await operationsOf(store)).first === undefined) return undefined;
  const tables = engines.accounts();
  const holder = `doctor-${world.randomUUID()}`;
  const coordination = engines.coordination();
  await catchUpAccounts({ store, tables, coordination, clock, log: silentLog, holder });
  return tables;
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let value: Promise<T> | undefined;
  return () => {
    value ??= read();
    return value;
  };
}

/** Returns what the work finds. If it fails or takes too long, that is the finding, with this remedy. */
export async function within(
  limitMs: number,
  remedy: string,
  work: () => Finding | Promise<Finding>,
): Promise<Finding> {
  const late = () => wrong(`no answer within ${limitMs / 1000} s`, remedy);
  try {
    return await orLate(Promise.resolve().then(work), limitMs, late);
  } catch (error) {
    const { cause } = error as Error;
    const why =
      cause instanceof Error && !reasonOf(error).includes(cause.message) ? ` (${cause.message})` : '';
    const { code, path } = error as NodeJS.ErrnoException;
    return wrong(
      `${reasonOf(error)}${why}`,
      code === 'EACCES' && path !== undefined ? asOwnerOf(path) : remedy,
    );
  }
}

/** Only a problem that somebody must act on makes a check fail; others are added to what it says. */
export function lineOf(check: string, { detail, problems }: Finding): CheckLine {
  const wrongs = problems.filter(({ isNotice }) => !isNotice);
  if (wrongs.length === 0) {
    const notices = problems.map((each) => `${each.detail} (${each.do})`);
    return { check, ok: true, detail: [detail, ...notices].join('; '), do: null };
  }
  const remedies = new Set(wrongs.map((each) => each.do));
  return {
    check,
    ok: false,
    detail: wrongs.map((each) => each.detail).join('; '),
    do: [...remedies].join('; '),
  };
}

function withoutSecrets(line: CheckLine, secrets: readonly string[]): CheckLine {
  const masked = (text: string): string =>
    secrets
      .filter(({ length }) => length >= MIN_SECRET_CHARACTERS)
      .reduce((masking, secret) => masking.replaceAll(secret, '********'), text);
  return { ...line, detail: masked(line.detail), do: line.do === null ? null : masked(line.do) };
}
