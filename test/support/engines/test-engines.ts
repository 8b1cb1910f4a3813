import { execFileSync } from 'node:child_process';

/** The program that starts separate engines for each data directory. If empty, everything is embedded. */
const PROGRAM = process.env.FUEL_TEST_ENGINES ?? '';

/** True if the black-box suites run on servers instead of embedded files. Tests of these files are skipped then. */
export const onServers = PROGRAM !== '';

type Env = Readonly<Record<string, string>>;

const given = new Map<string, Env>();

/**
 * Returns the settings of a process that uses this data directory, including those of engines. `FUEL_TEST_ENGINES` is
 * run once for each directory, which is its argument, and prints one JSON document with `EVENTSTORE_URL`, `MONGODB_URL`
 * and `MONGODB_DATABASE` (or those of PostgreSQL). These are empty engines for this directory alone, which it may stop
 * once it is removed. A test that names engines itself keeps them.
 */
export function withEngines(dataDir: string, env: Env): Env {
  const named = ['EVENTSTORE_URL', 'MONGODB_URL', 'POSTGRES_URL'].some((name) => env[name] !== undefined);
  return PROGRAM === '' || named ? env : { ...enginesOf(PROGRAM, dataDir), ...env };
}

function enginesOf(program: string, dataDir: string): Env {
  const known = given.get(dataDir);
  if (known !== undefined) return known;
  const settings = JSON.parse(execFileSync(program, [dataDir], { encoding: 'utf8' })) as Env;
  given.set(dataDir, settings);
  return settings;
}
