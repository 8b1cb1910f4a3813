#!/usr/bin/env node
/**
 * The engines of the black-box suites where no others are named: for each data directory a separate double of
 * EventStoreDB, and a separate database in the MongoDB of `FUEL_TEST_MONGODB`. Run with a data directory as its
 * argument it prints their settings; the double runs in the background until the directory is removed.
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

function start(dataDir: string): void {
  const self = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, [self, SERVE, dataDir], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const database = `fuel-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}`;
  createInterface({ input: child.stdout }).once('line', (EVENTSTORE_URL) => {
    const settings = {
      EVENTSTORE_URL,
      MONGODB_URL: process.env.FUEL_TEST_MONGODB,
      MONGODB_DATABASE: database,
    };
    process.stdout.write(`${JSON.stringify(settings)}\n`, () => process.exit(0));
  });
}

const [, , first = '', second = ''] = process.argv;
if (first === SERVE) await serve(second);
else start(first);
