import { fileURLToPath } from 'node:url';
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config';
import { SlowFirst } from './test/support/slow-first.ts';
import { PATIENCE_MS } from './test/support/waiting.ts';

const NODE = 24;
if (Number.parseInt(process.versions.node, 10) < NODE)
  throw new Error(
    `the tests need Node ${NODE}, and this is ${process.version}. Use npx vitest or an npm script, which take the project's Node`,
  );

/** Tests that `npm test` leaves out, because they need MongoDB, many processes, or real time. */
const NOT_QUICK = ['test/**/*.slow.test.ts', 'test/{crash,disks,e2e-long,soak}/**'];
/** Tests with separate scripts: they kill engines for minutes, or make an hour of load. */
const OWN_SCRIPT = ['test/crash/copy.test.ts', 'test/soak/soak.test.ts'];

type Project = NonNullable<UserWorkspaceConfig['test']>;

/** Longer than any test takes on a busy machine. Each wait in a test ends before, and says for what it was. */
const MAX_TEST_MS = 300_000;

const { env } = process;
const common: Project = {
  testTimeout: MAX_TEST_MS,
  hookTimeout: MAX_TEST_MS,
  expect: { poll: { timeout: PATIENCE_MS } },
  globalSetup: ['test/support/engines/engines-setup.ts'],
  setupFiles: ['test/support/setup.ts'],
  env: { TZ: 'America/New_York' }, // the machine's time zone must change nothing: every month and day is UTC's
  pool: 'forks',
  isolate: false, // loading everything again for each file would take longer than most tests
};
const DOUBLES = fileURLToPath(new URL('test/support/engines/double-engines.ts', import.meta.url));

/** The projects, one for each script in package.json. The environment says how long the endless ones run. */
export const projects: readonly Project[] = [
  {
    name: 'quick',
    include: ['test/**/*.test.ts'],
    exclude: NOT_QUICK,
    globalSetup: [],
    maxWorkers: 4, // without MongoDB; some wait more than they work
  },
  { name: 'all', include: ['test/**/*.test.ts'], exclude: OWN_SCRIPT, maxWorkers: 3 },
  {
    name: 'engines',
    include: ['test/{e2e,e2e-long}/**/*.test.ts'],
    maxWorkers: 1,
    // The servers are those of the named program, or else doubles of EventStoreDB and one MongoDB.
    env: { FUEL_TEST_ENGINES: env.FUEL_TEST_ENGINES || DOUBLES },
  },
  {
    name: 'crash',
    include: ['test/crash/**/*.test.ts'],
    maxWorkers: 1,
    env: { FUEL_CRASH_SECONDS: env.FUEL_CRASH_SECONDS ?? '600' },
  },
  {
    name: 'disks',
    include: ['test/disks/**/*.test.ts'],
    maxWorkers: 2,
    env: { FUEL_DISKS_SECONDS: env.FUEL_DISKS_SECONDS ?? '1800' },
  },
  {
    name: 'fuzz',
    include: ['test/fuzz/**/*.test.ts'],
    maxWorkers: 2,
    execArgv: ['--expose-gc'],
    env: { FUEL_FUZZ_SECONDS: env.FUEL_FUZZ_CASES ? '0' : (env.FUEL_FUZZ_SECONDS ?? '200') },
  },
  { name: 'soak', include: ['test/soak/soak.test.ts'], maxWorkers: 1 },
  {
    // These are the tests of the mutated modules that need neither a server nor another process.
    name: 'mutants',
    include: [
      'test/{domain,projections}/**/*.test.ts',
      'test/operator/{apply,import,lines}/*.test.ts',
      'test/tools/event-docs.test.ts',
      'test/accounts/{caller,key-text}.test.ts',
      'test/push/targets/{target,webhook-url}.test.ts',
      'test/pull/{cursor,parameters}.test.ts',
      'test/pull/edge/**/*.test.ts',
      'test/push/dispatch/{attempt,report-batch,retry-schedule}.test.ts',
      'test/accounts/rows/**/*.test.ts',
      'test/engines/sqlite/tables.test.ts',
      'test/push/health/*.test.ts',
      'test/push/queue/{failure-streak,next-state}.test.ts',
    ],
    // The excluded test compares the renderer with the schema on thousands of records, too long for every mutant.
    exclude: ['test/**/*.slow.test.ts', 'test/projections/record-agreement.test.ts'],
    globalSetup: [],
  },
];

/**
 * True if a project is loaded. Stryker can't name one and gets `mutants`. Without `--project`, a named file runs in
 * `all`.
 */
function isWanted({ name }: Project): boolean {
  if (env.STRYKER_MUTATOR_WORKER !== undefined) return name === 'mutants';
  return process.argv.some((argument) => argument.startsWith('--project')) || name === 'all';
}

export default defineConfig({
  test: {
    passWithNoTests: false,
    sequence: { sequencer: SlowFirst },
    projects: projects.filter(isWanted).map((project) => ({ test: { ...common, ...project } })),
  },
});
