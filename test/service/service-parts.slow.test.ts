import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { getTasks } from 'node-cron';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { Config } from '../../src/base/config/config.ts';
import { ROLES, type Role } from '../../src/base/config/settings.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import { startProcess } from '../../src/operator/serve/start-process.ts';
import type { Service } from '../../src/service/service.ts';
import { markMoved } from '../../src/service/stores/moved-store.ts';
import { bindStore } from '../../src/service/stores/store-binding.ts';
import { beginCopy } from '../../src/service/stores/unfinished-copy.ts';
import { lastingPort } from '../support/lasting-port.ts';
import { memoryLog } from '../support/service/api.ts';
import { Operator, openForUse } from '../support/service/operator.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { alterServedIn } from '../support/transactions/open-view.ts';
import { until } from '../support/waiting.ts';

const [FIRST, OTHER] = [randomBytes(32), randomBytes(32)].map((key) => key.toString('base64')) as [
  string,
  string,
];

/** Makes a machine with a data directory, and starts a service with some roles on it in this process. */
async function machine() {
  const env = {
    FUEL_DATA_DIR: join(temporaryFolder(), 'data'),
    FUEL_LISTEN: '127.0.0.1:0',
    FUEL_STOP_DELAY: '0s',
    FUEL_OPS_LISTEN: `127.0.0.1:${await lastingPort()}`,
    FUEL_LOG_LEVEL: 'fatal', // for the threads, which write to standard output
    FUEL_MASTER_KEY: FIRST,
    FUEL_WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  const lines: Record<string, unknown>[] = [];
  const configWith = (other: object): Config => loadConfig({ ...env, ...other }, 'serve');
  const engines = await openEngines(configWith({}), systemClock);
  onTestFinished(() => engines.close());
  const start = async (
    roles: readonly Role[],
    other: object = {},
    { clock = systemClock, signal }: { clock?: Clock; signal?: AbortSignal } = {},
  ): Promise<Service> => {
    const service = await startProcess({
      config: configWith(other),
      roles,
      log: memoryLog(lines),
      clock,
      ...(signal && { signal }),
    });
    onTestFinished(() => service.stop().catch(() => undefined));
    return service;
  };
  const opsUrl = `http://${env.FUEL_OPS_LISTEN}`;
  const stopped = () => lines.filter(({ msg }) => msg === 'part stopped').map(({ part }) => part);
  const operations = async () => (await engines.store().readStream('operations')).map(({ type }) => type);
  return { env, engines, configWith, start, opsUrl, stopped, operations };
}

async function readinessOf(service: Service): Promise<Record<string, unknown>> {
  return (await (await fetch(`${service.opsUrl}/readyz`)).json()) as Record<string, unknown>;
}

describe('a service', () => {
  test('of all roles waits for each part of it, and stops the parts that its stores are needed by first', async () => {
    const { start, engines, stopped, operations } = await machine();
    const service = await start(ROLES);
    await until(async () => (await readinessOf(service)).ready === true);
    expect(await readinessOf(service)).toEqual({
      ready: true,
      checks: {
        accounts_up_to_date: true,
        not_stopping: true,
        subscription_connected: true,
        disk: true,
      },
    });
    expect(await operations()).toContain('DeliveryLogStarted');
    await until(async () => (await engines.coordination().live(6_000))[0]?.isReady === true);
    await service.stop();
    expect(stopped()).toEqual([
      'readiness',
      'API',
      'webhooks',
      'notices',
      'nightly verification',
      'projector',
      'loop delay',
      'figures',
      'freshness of accounts',
      'accounts',
      'process report',
      'operations listener',
      'stores',
      'spans',
    ]);
    expect(await engines.coordination().live(6_000)).toEqual([]);
  });

  test('that does not deliver claims no delivery log, and has no thread to wait for', async () => {
    const { start, operations } = await machine();
    const service = await start(['notices']);
    await until(async () => (await readinessOf(service)).ready === true);
    expect(Object.keys((await readinessOf(service)).checks as object)).toEqual([
      'accounts_up_to_date',
      'not_stopping',
      'disk',
    ]);
    expect(await operations()).not.toContain('DeliveryLogStarted');
  });

  test('of which a thread fails fails with its error', async () => {
    const { start, configWith, env, engines } = await machine();
    const { view, store } = engines;
    const storeId = await bindStore(store(), configWith({}), { clock: systemClock });
    await view().reset(storeId, 0);
    await alterServedIn(env.FUEL_DATA_DIR, (made) => ({ ...made, rendering: 1_000_000 }));
    const service = await start(['projector']);
    await expect(service.failed).rejects.toMatchObject({ code: 'STORE_NEWER' });
  });

  test('shows the proof of its last night', async () => {
    const { start } = await machine();
    const others = new Set(getTasks().keys());
    const service = await start(['projector']);
    const page = async () => (await fetch(`${service.opsUrl}/projections`)).text();
    expect(await page()).toContain('this process has not verified since it started');
    const [night] = [...getTasks().values()].filter(({ id }) => !others.has(id));
    await night?.execute();
    await until(async () => (await page()).includes('they agreed'));
  });

  test('whose webhooks cannot be signed fails with what is missing', async () => {
    const { start, configWith, env, engines } = await machine();
    const both = `${OTHER},${FIRST}`;
    await new Operator({ ...env, FUEL_MASTER_KEY: FIRST }).provision(7, openForUse(7), {
      webhookUrl: 'https://127.0.0.1:9/hook',
    });
    await bindStore(engines.store(), configWith({ FUEL_MASTER_KEY: both }), { clock: systemClock });
    const service = await start(['webhooks'], { FUEL_MASTER_KEY: OTHER });
    await expect(service.failed).rejects.toMatchObject({ code: 'SECRET_UNREADABLE' });
  });
});

describe('a service does not start, and leaves nothing running,', () => {
  type Machine = Awaited<ReturnType<typeof machine>>;
  test.each<[string, string, (m: Machine) => Promise<object | undefined>]>([
    [
      'on a view of another store',
      'STORE_MISMATCH',
      async ({ engines }) => void (await engines.view().reset('another', 0)),
    ],
    [
      'without the master key that its embedded store knows, also without webhooks',
      'STORE_MISMATCH',
      async ({ engines, configWith }) => {
        await bindStore(engines.store(), configWith({}), { clock: systemClock });
        return { FUEL_MASTER_KEY: undefined };
      },
    ],
    [
      'on a store that was moved',
      'STORE_MOVED',
      async ({ engines, env }) => {
        const author = { actor: 'test', command: 'test' };
        const mark = { folder: env.FUEL_DATA_DIR, store: engines.store(), author, clock: systemClock };
        await markMoved(['esdb://elsewhere:2113'], mark);
      },
    ],
    [
      'on stores into which a copy was begun',
      'REFUSED',
      async ({ engines }) => void (await beginCopy(engines.coordination(), 'another')),
    ],
  ])('%s', async (_, code, spoil) => {
    const m = await machine();
    const other = await spoil(m);
    await expect(m.start(['notices'], other)).rejects.toMatchObject({ code });
    expect(m.stopped()).toEqual(['operations listener', 'stores', 'spans']);
    await expect(fetch(`${m.opsUrl}/healthz`)).rejects.toThrow('fetch failed');
  });

  test('that is asked to stop while the stores are checked starts no part', async () => {
    const { start, stopped } = await machine();
    const stopping = new AbortController();
    const clock = {
      now() {
        stopping.abort(); // done when the checks name the store
        return Date.now();
      },
    };
    const starting = start(['notices'], {}, { clock, signal: stopping.signal });
    await expect(starting).rejects.toMatchObject({ name: 'AbortError' });
    expect(stopped()).toEqual(['operations listener', 'stores', 'spans']);
  });
});
