import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { optional, secret, setting } from '../../src/base/config/setting.ts';
import { positiveInteger, startsWith } from '../../src/base/config/values.ts';
import { FuelError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { engineRegistry, registry } from '../../src/engines/engines.ts';
import { openSqliteTables } from '../../src/engines/sqlite/tables/tables.ts';
import { examine } from '../../src/operator/checks/doctor.ts';
import type { Engine } from '../../src/service/engines/engine.ts';
import { EngineHealth } from '../../src/service/engines/engine-health.ts';
import type { PortName } from '../../src/service/engines/engines.ts';
import { newDelivery } from '../support/deliveries/deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const URL = 'toy://ada:pepper@host:1/';

/** An engine for the tables alone; what it is opened with is in `folder`. */
function toy(folder = temporaryFolder(), name = 'TOY'): Engine {
  const settings = {
    [`${name}_URL`]: secret(optional(startsWith('toy://'), 'The box.')),
    [`${name}_SIZE`]: setting('3', positiveInteger, 'How many toys.'),
  };
  return {
    name: name.toLowerCase(),
    title: 'Toy',
    setting: `${name}_URL`,
    check: 'toy-box',
    oldestVersion: [1, 0],
    settings,
    ports: ['tables'],
    async assertSettings({ ofEngines }) {
      if (ofEngines[`${name}_URL`]?.includes('?'))
        throw new FuelError('CONFIG_INVALID', `${name}_URL: no options`);
    },
    open: async () => ({
      ports: {
        tables: (plan) => openSqliteTables(plan, { path: join(folder, `${name}-${plan.name}.db`) }),
      },
      state: async () => 'current',
      server: {
        ping: async () => undefined,
        describe: async () => ({ version: '0.9' }),
      },
    }),
  };
}

function withToy(env: Readonly<Record<string, string>> = { TOY_URL: URL }, servers = [toy()]) {
  const { openEngines, loadConfig, ...others } = engineRegistry([...registry.servers, ...servers]);
  const dataDir = temporaryFolder();
  const environment = { FUEL_DATA_DIR: dataDir, ...env };
  return {
    ...others,
    dataDir,
    environment,
    load: () => loadConfig(environment, 'command'),
    async open() {
      const engines = await openEngines(loadConfig(environment, 'command'), systemClock);
      onTestFinished(() => engines.close());
      return engines;
    },
  };
}

describe('an engine for the tables alone, registered by one line', () => {
  test('has the deliveries, and what is in no table is a file', async () => {
    const { open, dataDir } = withToy();
    const engines = await open();
    await engines.queue().enqueue([newDelivery(1)]);
    await engines.store().head();
    expect(existsSync(join(dataDir, 'deliveries.db'))).toBe(false);
    expect(existsSync(join(dataDir, 'events.db'))).toBe(true);
    expect(engines.embedded).toEqual(['store', 'subscriptions']);
    expect(await engines.state('queue')).toBe('current');
    expect(await engines.state('subscriptions')).toBe('missing');
    expect((await (await open()).queue().backlog({ nowMs: 1_000, limit: 10 })).pending).toBe(1);
  });

  test('is not opened where its setting is not set', async () => {
    const engines = await withToy({}).open();
    expect(engines.remote).toEqual([]);
    expect(engines.embedded).toContain('queue');
  });

  test('has its settings read, judged, shown and masked as the others’', async () => {
    const { load, environment, showConfig, inspectConfig, unknownSettings } = withToy();
    expect(load().ofEngines).toEqual({ TOY_URL: URL });
    const { settings } = showConfig(environment);
    expect(settings.filter(({ name }) => name.startsWith('TOY'))).toMatchObject([
      { name: 'TOY_URL', value: '********', source: 'environment' },
      { name: 'TOY_SIZE', value: '3', source: 'default' },
    ]);
    expect(inspectConfig(environment).secrets).toContain('pepper');
    expect(showConfig({ TOY_URL: 'http://x', TOY_SIZE: '0' }).faults).toEqual([
      'TOY_URL: must be a connection string that starts with toy://',
      'TOY_SIZE: must be a whole number from 1',
    ]);
    const toys = engineRegistry([toy(temporaryFolder(), 'FUEL_TOY')]);
    expect(toys.unknownSettings({ FUEL_TOY_URL: URL })).toEqual([]);
    expect(unknownSettings({ FUEL_TOY_URL: URL })).toMatchObject([{ name: 'FUEL_TOY_URL' }]);
  });

  test('has its driver’s faults said at the start', async () => {
    const { faultsOfEngines, load } = withToy({ TOY_URL: `${URL}?x=1` });
    expect(await faultsOfEngines(load())).toEqual(['TOY_URL: no options']);
  });

  test('is part of readiness, and a check of doctor', async () => {
    const { open, environment, ...registry } = withToy();
    const health = new EngineHealth((await open()).remote, systemClock);
    expect([await health.state(), health.logs]).toEqual([{ toy: true }, []]);
    const { openEngines, loadConfig } = engineRegistry(registry.servers);
    const found = await examine(environment, systemClock, { ...registry, openEngines, loadConfig });
    expect(found.find(({ check }) => check === 'toy-box')).toEqual({
      check: 'toy-box',
      ok: false,
      detail: 'Toy 0.9 answers',
      do: 'update it to 1.0 or newer',
    });
    const unused = ['event-store', 'mongodb', 'postgresql'];
    expect(found.filter(({ check }) => unused.includes(check))).toEqual([]);
  });

  test('is named where a setting is missing, and its address has no password', async () => {
    const { settingsFor, open } = withToy();
    expect([settingsFor('queue'), settingsFor('store')]).toEqual([
      'MONGODB_URL or POSTGRES_URL or TOY_URL',
      'EVENTSTORE_URL',
    ]);
    expect((await open()).remote).toMatchObject([{ address: 'toy://host:1', serves: ['tables'] }]);
  });
});

test('of several engines that are selected for a port the last one of the registry serves it', async () => {
  const second = toy(temporaryFolder(), 'SECOND');
  const both = { TOY_URL: URL, SECOND_URL: URL };
  expect((await withToy(both, [toy(), second]).open()).remote).toMatchObject([{ name: 'second' }]);
  const withMongo = await withToy({ MONGODB_URL: 'mongodb://host/', TOY_URL: URL }).open();
  expect(withMongo.remote).toMatchObject([
    { name: 'mongodb', serves: ['rateWindows'] },
    { name: 'toy', serves: ['tables'] },
  ]);
});

test.each(registry.servers)('$name opens the ports that it names', async (engine) => {
  const urls = { eventstoredb: 'esdb://host', mongodb: 'mongodb://host/', postgresql: 'postgres://host/' };
  const url = urls[engine.name as keyof typeof urls];
  const config = registry.loadConfig({ [engine.setting]: url }, 'command');
  const once = <T>(open: () => T) => open;
  const { ports } = await engine.open({ config, clock: systemClock, log: silentLog, once });
  expect((Object.keys(ports) as PortName[]).toSorted()).toEqual(engine.ports.toSorted());
});

test('PostgreSQL and MongoDB are not selected both: the tables would be in one of them', async () => {
  const { load, faultsOfEngines, open } = withToy({
    MONGODB_URL: 'mongodb://host/',
    POSTGRES_URL: 'postgres://host/',
  });
  const told = /^POSTGRES_URL: MONGODB_URL is set too.*Unset the other/;
  expect(await faultsOfEngines(load())).toEqual([expect.stringMatching(told)]);
  await expect(open()).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(told),
  });
});

describe('a URL whose password has to be encoded', () => {
  test.each([
    { name: 'EVENTSTORE_URL', url: 'esdb://fuel:p%deper@es:2113' },
    { name: 'EVENTSTORE_URL', url: 'esdb://fuel:a?peper@es:2113?tls=false' },
    { name: 'MONGODB_URL', url: 'mongodb://fuel:p%deper@mongo:27017/fuel' },
    { name: 'MONGODB_URL', url: 'mongodb://fuel:a/peper@mongo:27017/fuel' },
    { name: 'POSTGRES_URL', url: 'postgres://fuel:p%deper@pg:5432/fuel' },
    { name: 'POSTGRES_URL', url: 'postgres://fuel:a#peper@pg:5432/fuel' },
    { name: 'FUEL_SMTP_URL', url: 'smtp://fuel:a/peper@mail:587' },
  ])(
    'is refused with the name $name and what to write, without the password: $url',
    async ({ name, url }) => {
      const refused = await (async () => {
        const { assertSettings } = registry.servers.find(({ setting }) => setting === name) ?? {};
        await assertSettings?.(registry.loadConfig({ [name]: url }, 'command'));
        return registry.loadConfig({ [name]: url }, 'command');
      })().catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: 'CONFIG_INVALID' });
      const { message } = refused as FuelError;
      expect(message).toContain(name);
      expect(message).toMatch(/write @ : \/ \? # % and spaces as %40 %3A %2F %3F %23 %25 %20/);
      expect(message).not.toMatch(/eper/);
    },
  );
});
