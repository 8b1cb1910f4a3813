import { generateKeyPairSync } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Config } from '../../src/base/config/config.ts';
import { sealKeysIn } from '../../src/base/config/seal-keys.ts';
import { FuelError } from '../../src/base/errors.ts';
import { loadConfig } from '../../src/engines/engines.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { verifierOf } from '../../src/seals/seal-key.ts';
import { sealLog } from '../../src/seals/seal-log.ts';
import { lastSeal } from '../../src/seals/seals.ts';
import { MemoryLog, openMemoryEventStore } from '../support/engines/memory-log.ts';
import { named, record } from '../support/event-store/store-events.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { memoryLog } from '../support/service/api.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/waiting.ts';

const pem = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;

function start(env: Record<string, string> = {}, on = (store: EventStore) => store) {
  const folder = temporaryFolder();
  const config: Config = loadConfig({ FUEL_DATA_DIR: folder, ...env }, 'command');
  const store = openMemoryEventStore(new MemoryLog(), new FakeClock());
  const lines: Record<string, unknown>[] = [];
  const stopping = new AbortController();
  const running = sealLog({
    config,
    store: on(store),
    holder: 'this',
    clock: new FakeClock(),
    log: memoryLog(lines),
    coordination: { acquire: async () => true, release: async () => undefined },
    limits: { withinMs: 0 },
    signal: stopping.signal,
  });
  const stop = async (): Promise<void> => {
    stopping.abort();
    await running;
  };
  return {
    store,
    config,
    folder,
    lines,
    running,
    stop,
    errors: () => lines.filter(({ level }) => level === 50),
  };
}

test('a store that is unavailable at the start is waited for, and the log is sealed then', async () => {
  let failures = 2;
  const { store, config, stop, errors } = start({ FUEL_SEAL_KEY: pem.replaceAll('\n', '\\n') }, (real) => ({
    ...real,
    async readStream(...args) {
      if (failures-- > 0) throw new FuelError('STORE_UNAVAILABLE', 'gone');
      return real.readStream(...args);
    },
  }));
  await until(async () => (await store.readStream('operations')).length === 1);
  await record(store, 'account-1', 'a');
  await until(async () => (await lastSeal(store)) !== undefined);
  await stop();
  expect(errors()).toEqual([]);
  const [named] = await store.readStream('operations');
  const storeId = String((named?.data as { store_id?: unknown } | undefined)?.store_id);
  expect(verifierOf(storeId, config).open((await lastSeal(store))?.note ?? '')).toMatchObject({
    origin: `fuel-integration/${storeId}`,
  });
});

test('a start that ends while the store is away leaves nothing, and says nothing', async () => {
  const away = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'gone'));
  const { stop, errors } = start({}, (real) => ({ ...real, readStream: away }));
  await stop();
  expect(errors()).toEqual([]);
});

test.each([
  ['of another type', { type: 'StoreNamed', data: { store_id: 'one' } }, 'it is StoreNamed'],
  ['of an unknown type', { type: 'Foreign', data: {} }, 'unknown event type Foreign'],
  ['that lacks its root', { type: 'LogSealed', data: { size: 1 } }, 'root'],
])('sealing ends with one line if the newest seal is an event %s', async (_, { type, data }, reason) => {
  const { store, running, errors } = start({}, (real) => {
    void real.append([{ stream: 'seals', expected: 'none', events: [{ ...named(''), type, data }] }]);
    return real;
  });
  await record(store, 'account-1', 'a');
  await running;
  expect(errors()).toMatchObject([
    { msg: 'the log is no longer sealed: run fuel audit verify', err: { message: expect.any(String) } },
  ]);
  expect(JSON.stringify(errors())).toContain(`the newest seal, seals@0, cannot be read: ${reason}`);
  expect(await store.readStream('seals')).toHaveLength(1);
});

test('in staging a key is made once, for its owner alone; in production a command that needs one says how to name it', async () => {
  const { folder, config, stop } = start();
  await until(() => existsSync(join(folder, 'seal.key')));
  await stop();
  expect(String(verifierOf('one', config))).toBe(String(verifierOf('one', config)));
  const production = loadConfig({ FUEL_DATA_DIR: folder, FUEL_ENVIRONMENT: 'production' }, 'command');
  expect(() => verifierOf('one', production)).toThrow('--key');
});

test('former keys stand behind the one that signs, also as public keys', () => {
  const former = generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' });
  expect(sealKeysIn(`${pem}\n${former}`).map(({ type }) => type)).toEqual(['private', 'public']);
  expect(sealKeysIn(`${pem}${pem}`.replaceAll('\n', '\\n')).map(({ type }) => type)).toEqual([
    'private',
    'private',
  ]);
  expect(() => sealKeysIn(`${former}${pem}`)).toThrow('must be an Ed25519');
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
    format: 'pem',
    type: 'spki',
  });
  expect(() => sealKeysIn(`${pem}${rsa}`)).toThrow('must be an Ed25519');
});

test.each(['none', pem.replace('PRIVATE', 'PUBLIC')])(
  'a key that is none is an error, and nothing of it is said',
  async (text) => {
    const named = () => loadConfig({ FUEL_SEAL_KEY: text }, 'command');
    expect(named).toThrow('FUEL_SEAL_KEY: must be an Ed25519 private key in PEM (openssl genpkey');
    expect(named).not.toThrow(text.slice(30, 60) || 'none');
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'seal.key'), text, { mode: 0o600 });
    const { running, errors } = start({ FUEL_DATA_DIR: folder });
    await running;
    expect(errors()).toHaveLength(1);
    expect(JSON.stringify(errors())).not.toContain(text.slice(30, 60) || 'never');
  },
);
