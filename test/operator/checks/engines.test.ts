import { describe, expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { eventStoreDb } from '../../../src/engines/eventstoredb/engine.ts';
import { mongoDb } from '../../../src/engines/mongodb/engine.ts';
import { checkEngine } from '../../../src/operator/checks/servers.ts';
import type { Server, ServerKind } from '../../../src/service/engines/engines.ts';
import { said } from '../../support/checks/facts.ts';

const NOW_MS = 1_000_000;

interface Engine {
  readonly kind?: ServerKind;
  readonly version?: string;
  /** The name that it gives itself. */
  readonly called?: string;
  readonly clockMs?: number;
  readonly failing?: 'ping' | 'describe';
}

function engine({
  kind = mongoDb,
  version = '7.0.5',
  called,
  clockMs = NOW_MS,
  failing,
}: Engine = {}): ServerKind & Server {
  const away = new FuelError('STORE_UNAVAILABLE', 'it cannot be reached');
  return {
    ...kind,
    ping: async () => {
      if (failing === 'ping') throw away;
    },
    describe: async () => {
      if (failing !== undefined) throw away;
      return { version, clockMs, ...(called === undefined ? {} : { name: called }) };
    },
  };
}

const eventStore = (version: string, called: string) => engine({ kind: eventStoreDb, version, called });

describe('an engine', () => {
  test.each([
    [engine(), true, 'MongoDB 7.0.5 answers'],
    [engine({ version: '6.0.0' }), true, 'MongoDB 6.0.0 answers'],
    [engine({ version: '5.9.9' }), false, 'MongoDB 5.9.9 answers'],
    [eventStore('23.10.6.0', 'EventStoreDB'), true, 'EventStoreDB 23.10.6.0 answers'],
    [eventStore('23.9.1', 'EventStoreDB'), false, 'EventStoreDB 23.9.1 answers'],
    [eventStore('25.0.0', 'KurrentDB'), true, 'KurrentDB 25.0.0 answers'],
    [engine({ failing: 'ping' }), false, 'it cannot be reached'],
    [engine({ failing: 'describe' }), true, 'does not tell its version'],
  ])('%o is right: %s', async (given, ok, detail) => {
    expect(await said(checkEngine(given))).toMatchObject({ ok, detail: expect.stringContaining(detail) });
  });

  test('that does not answer is named with its setting', async () => {
    expect(await said(checkEngine(engine({ failing: 'ping' })))).toMatchObject({
      do: 'start MongoDB, or correct MONGODB_URL',
    });
  });
});
