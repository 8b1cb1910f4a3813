import { execFileSync } from 'node:child_process';

/** The program that starts separate engines for each data directory; empty: everything is embedded. */
const PROGRAM = process.env.FUEL_TEST_ENGINES ?? '';

/** Whether the black-box suites run on servers instead of the embedded files: tests of these files are left out then. */
export const onServers = PROGRAM !== '';

type Env = Readonly<Record<string, string>>;

const given = new Map<string, Env>();

/**
 * The settings of a process that uses this data directory, the engines' among them. `FUEL_TEST_ENGINES` is run once
 * for each directory, with it as its argument, and prints one JSON document of `EVENTSTORE_URL`, `MONGODB_URL` and
 * `MONGODB_DATABASE`: empty engines for this directory alone, which it may stop once the directory is removed.
 * A test that names engines itself keeps them.
 */
export function withEngines(dataDir: string, env: Env): Env {
  const named = env.EVENTSTORE_URL !== undefined || env.MONGODB_URL !== undefined;
  return PROGRAM === '' || named ? env : { ...enginesOf(PROGRAM, dataDir), ...env };
}

function enginesOf(program: string, dataDir: string): Env {
  const known = given.get(dataDir);
  if (known !== undefined) return known;
  const settings = JSON.parse(execFileSync(program, [dataDir], { encoding: 'utf8' })) as Env;
  given.set(dataDir, settings);
  return settings;
}
