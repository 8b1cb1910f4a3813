import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, inject, onTestFinished } from 'vitest';
import { type EventStoreDbDouble, startEventStoreDbDouble } from './eventstoredb-double.ts';
import { KINDS } from './kinds.ts';

/** Opens a client of the engine under test, which is disposed when the test is over. `url` is that of the engine. */
export type OpenClient = (() => EventStoreDBClient) & { readonly url: string };

/**
 * Runs the same tests on the double of each kind and, if there is one, on a real server, so that the double behaves
 * like it. Streams must have unique names: the real server's log is shared.
 */
export function describeBoth(name: string, tests: (client: OpenClient) => void): void {
  describe.each(KINDS)(`${name}, by the double of %s`, (kind) => {
    let double: EventStoreDbDouble;
    beforeAll(async () => {
      double = await startEventStoreDbDouble({ kind });
    });
    afterAll(() => double.stop());
    tests(openerAt(() => double.url));
  });
  const real = inject('eventstoreUrl');
  describe.runIf(real !== undefined)(`${name}, by the real server`, () => {
    tests(openerAt(() => real ?? ''));
  });
}

function openerAt(url: () => string): OpenClient {
  return Object.defineProperty(() => openClient(url()), 'url', { get: url }) as OpenClient;
}

export function openClient(url: string): EventStoreDBClient {
  const client = EventStoreDBClient.connectionString(url);
  onTestFinished(() => client.dispose());
  return client;
}

/** Returns a name that no other test uses. */
export function unique(prefix: string): string {
  return `${prefix}-${crypto.randomUUID().slice(0, 8)}`;
}
