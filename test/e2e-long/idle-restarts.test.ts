import { expect, it, onTestFinished } from 'vitest';
import { onServers } from '../support/engines/test-engines.ts';
import { startEventStoreDbDouble } from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { KINDS } from '../support/event-store/eventstoredb-double/kinds.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  idsOf,
  importEvents,
  minutely,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const KILLS = 3;
/** An engine's own records follow the last event within a second or two, and a checkpoint is moved once a second. */
const IDLE_MS = 2_500;
const OWN = onServers ? 'the servers of this run' : 'its files';

it.each([OWN, ...KINDS.map((kind) => `the double of ${kind}`)])(
  'a service that was killed while it was idle starts again each time, on %s',
  async (engine) => {
    const kind = KINDS.find((name) => engine.endsWith(name));
    const node =
      engine === OWN ? undefined : await startEventStoreDbDouble(kind === undefined ? {} : { kind });
    onTestFinished(async () => node?.stop());
    const service = new ServiceProcess(node === undefined ? {} : { env: { EVENTSTORE_URL: node.url } });
    await service.start();
    const { key } = await openAccount(service);
    await importEvents(service, minutely(3));
    for (let kills = 0; kills < KILLS; kills++) {
      await node?.becomeLeader();
      const idleUntilMs = Date.now() + IDLE_MS;
      await until(async () => Date.now() > idleUntilMs, 2 * IDLE_MS);
      await service.restart();
    }
    await importEvents(service, minutely(1, 4));
    const { body } = await service.get(`/transactions?${SEPTEMBER}`, { key });
    expect(idsOf(body)).toHaveLength(4);
  },
  120_000,
);
