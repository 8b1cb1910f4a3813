#!/usr/bin/env node
/**
 * The engines of the black-box suites if no others are named: for each data directory a separate double of
 * EventStoreDB, and a separate database in the MongoDB of `FUEL_TEST_MONGODB`, or, with `FUEL_TEST_TABLES=postgresql`,
 * a separate schema in the PostgreSQL of `FUEL_TEST_POSTGRES`. With `FUEL_TEST_EVENTS=embedded` the events are files.
 * Run with a data directory as its argument, it prints their settings. The double runs in the background until the
 * directory is removed.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startEventStoreDbDouble } from '../event-store/eventstoredb-double/eventstoredb-double.ts';

const SERVE = '--serve';
const LOOK_MS = 2_000;
/** A test creates its folder before it asks for engines, or a moment later. */
const APPEARS_WITHIN_MS = 60_000;

async function serve(dataDir: string): Promise<void> {
  const double = await startEventStoreDbDouble();
  process.stdout.write(`${double.url}\n`);
  const startedAtMs = Date.now();
  let wasThere = false;
  const looking = setInterval(() => {
    const isThere = existsSync(dirname(dataDir));
    wasThere ||= isThere;
    if (isThere || (!wasThere && Date.now() - startedAtMs < APPEARS_WITHIN_MS)) return;
    clearInterval(looking);
    void double.stop();
  }, LOOK_MS);
}

/** Returns the settings of the engine of tables. */
function tablesOf(dataDir: string): Readonly<Record<string, string | undefined>> {
  const own = createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
  const { FUEL_TEST_TABLES, FUEL_TEST_MONGODB, FUEL_TEST_POSTGRES } = process.env;
  return FUEL_TEST_TABLES === 'postgresql'
    ? { POSTGRES_URL: FUEL_TEST_POSTGRES, FUEL_POSTGRES_SCHEMA: `fuel_${own}` }
    : { MONGODB_URL: FUEL_TEST_MONGODB, MONGODB_DATABASE: `fuel-${own}` };
}

function start(dataDir: string): void {
  const print = (settings: object): void => {
    process.stdout.write(`${JSON.stringify(settings)}\n`, () => process.exit(0));
  };
  if (process.env.FUEL_TEST_EVENTS === 'embedded') {
    print(tablesOf(dataDir));
    return;
  }
  const self = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, [self, SERVE, dataDir], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  createInterface({ input: child.stdout }).once('line', (EVENTSTORE_URL) =>
    print({ EVENTSTORE_URL, ...tablesOf(dataDir) }),
  );
}

const [, , first = '', second = ''] = process.argv;
if (first === SERVE) await serve(second);
else start(first);
