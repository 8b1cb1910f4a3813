import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, inject, onTestFinished } from 'vitest';
import { type EventStoreDbDouble, startEventStoreDbDouble } from './eventstoredb-double.ts';

/** Opens a client of the engine under test, which is disposed when the test is over. */
export type OpenClient = () => EventStoreDBClient;

/**
 * Runs the same tests on the double and, where there is one, on a real server, so that the double behaves like it.
 * Streams must have unique names: the real server's log is shared.
 */
export function describeBoth(name: string, tests: (client: OpenClient) => void): void {
  describe(`${name}, by the double`, () => {
    let double: EventStoreDbDouble;
    beforeAll(async () => {
      double = await startEventStoreDbDouble();
    });
    afterAll(() => double.stop());
    tests(() => openClient(double.url));
  });
  const real = inject('eventstoreUrl');
  describe.runIf(real !== undefined)(`${name}, by the real server`, () => {
    tests(() => openClient(real ?? ''));
  });
}

export function openClient(url: string): EventStoreDBClient {
  const client = EventStoreDBClient.connectionString(url);
  onTestFinished(() => client.dispose());
  return client;
}

/** A name that no other test uses. */
export function unique(prefix: string): string {
  return `${prefix}-${crypto.randomUUID().slice(0, 8)}`;
}
