import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { MasterKeys } from '../../../src/accounts/master-key.ts';
import type { Config } from '../../../src/base/config/config.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { loadConfig } from '../../../src/engines/engines.ts';
import {
  assertSecretsReadable,
  bindStore,
  mayHaveHad,
  trustMasterKey,
} from '../../../src/service/stores/store-binding.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { rowsAfter } from '../../support/accounts/rows-after.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { replacing } from '../../support/interposed.ts';
import { memoryLog } from '../../support/service/api.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { confirmed, linesOf } from '../../support/transactions/e2e-samples.ts';

const KEYS = [1, 2].map((n) => Buffer.alloc(32, n).toString('base64')) as [string, string];
const OPEN = ['account', 'open', '7', '--name', 'Seven'] as const;

/** A command line on an empty folder. `as` runs it with other settings on the same folder. */
function start(env: Readonly<Record<string, string>> = {}) {
  const cli = commandLine(env, { hasStore: false });
  const dataDir = process.env.FUEL_DATA_DIR ?? '';
  const as = (other: Readonly<Record<string, string>>, ...args: readonly string[]) => {
    const own = commandLine({ ...env, FUEL_DATA_DIR: dataDir, ...other }, { hasStore: false });
    return own.fuel(...args);
  };
  const binding = async () =>
    (await cli.eventsOf('operations'))
      .filter(({ type }) => type !== 'StoreNamed')
      .map(({ type, data }) => [type, data]);
  return { ...cli, dataDir, as, binding };
}

describe('a store', () => {
  test('records its environment and its master key with the first command, once', async () => {
    const { fuel, binding } = start({ FUEL_MASTER_KEY: KEYS[0] });
    expect((await fuel(...OPEN)).code).toBe(0);
    expect((await fuel('account', 'integration', '7', 'on')).code).toBe(0);
    const fingerprint = expect.stringMatching(/^[0-9a-f]{16}$/);
    expect(await binding()).toEqual([
      ['EnvironmentSet', { environment: 'staging' }],
      [
        'MasterKeyAdded',
        { fingerprint, master_key_id: expect.stringMatching(/^[0-9a-f]{8}$/), reason: null },
      ],
    ]);
    expect(JSON.stringify(await binding())).not.toContain(KEYS[0]);
  });

  test.each([
    [...OPEN],
    ['transaction', 'import', 'LINES'],
    ['projection', 'rebuild', 'transactions'],
    ['verify', '--repair'],
    ['key', 'issue', '1', '--webhook-url', 'https://hook.example'],
    ['store', 'trust-key', '--reason', 'a slip'],
  ])('takes nothing from another environment: fuel %s %s', async (...args) => {
    const { fuel, file, as, eventsOf } = start();
    expect((await fuel('account', 'open', '1', '--name', 'One')).code).toBe(0);
    const before = await eventsOf('operations');
    const lines = file('lines.jsonl', linesOf([confirmed(501)]));
    const production = { FUEL_ENVIRONMENT: 'production', FUEL_MASTER_KEY: KEYS[1] };
    const { code, stderr } = await as(production, ...args.map((arg) => (arg === 'LINES' ? lines : arg)));
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/belongs to staging, and FUEL_ENVIRONMENT is production/),
    ]);
    expect(await eventsOf('operations')).toEqual(before);
    expect(await eventsOf('transaction-501')).toEqual([]);
  });

  test('accepts nothing under a master key that it does not know, and a lost one is not replaced', async () => {
    const { fuel, as, dataDir, eventsOf } = start();
    expect((await fuel(...OPEN)).code).toBe(0);
    expect((await fuel('key', 'issue', '7', '--webhook-url', 'https://hook.example')).code).toBe(0);
    const before = await eventsOf('account-7');
    rmSync(join(dataDir, 'master.key'));
    for (const [env, found] of [
      [{}, 'none is given'],
      [{ FUEL_MASTER_KEY: KEYS[0] }, 'the one given is'],
    ] as const) {
      for (const args of [
        ['account', 'integration', '7', 'on'],
        ['key', 'issue', '7', '--webhook-url', 'https://hook.example'],
      ]) {
        const { code, stderr } = await as(env, ...args);
        expect([code, stderr]).toEqual([1, expect.stringContaining(found)]);
        expect(stderr).toMatch(/master\.key.*trust-key/);
      }
    }
    expect(await eventsOf('account-7')).toEqual(before);
    expect(existsSync(join(dataDir, 'master.key'))).toBe(false);
  });

  test('belongs to the environment that was set first, and names what would move it', async () => {
    const { fuel, as, append } = start({ FUEL_MASTER_KEY: KEYS[0] });
    expect((await fuel(...OPEN)).code).toBe(0);
    await append('operations', [{ type: 'EnvironmentSet', data: { environment: 'production' } }]);
    expect((await fuel('account', 'integration', '7', 'on')).code).toBe(0);
    const { lines } = await fuel('doctor', '--json');
    expect(lines.find(({ check }) => check === 'store')).toMatchObject({
      detail: expect.stringContaining('event 3 of operations sets another environment: it is ignored'),
    });
    const moved = await as(
      { FUEL_ENVIRONMENT: 'production' },
      'account',
      'integration',
      '7',
      'off',
      '--reason',
      'x',
    );
    expect([moved.code, moved.stderr]).toEqual([1, expect.stringContaining('The store belongs to staging')]);
  });

  test('learns a further key beside one that it knows, and then takes either', async () => {
    const [former, latter] = KEYS;
    const { fuel, as, binding } = start({ FUEL_MASTER_KEY: former });
    expect((await fuel(...OPEN)).code).toBe(0);
    const on = ['account', 'integration', '7', 'on'] as const;
    expect((await as({ FUEL_MASTER_KEY: latter }, ...on)).code).toBe(1);
    expect((await as({ FUEL_MASTER_KEY: `${latter},${former}` }, ...on)).code).toBe(0);
    expect((await as({ FUEL_MASTER_KEY: latter }, 'account', 'integration', '7', 'off')).code).toBe(0);
    expect((await binding()).map(([type]) => type)).toEqual([
      'EnvironmentSet',
      'MasterKeyAdded',
      'MasterKeyAdded',
    ]);
  });

  test('accepts a new key for a lost one when the operator says so, with the reason on record', async () => {
    const { fuel, as, binding } = start({ FUEL_MASTER_KEY: KEYS[0] });
    expect((await fuel(...OPEN)).code).toBe(0);
    const other = { FUEL_MASTER_KEY: KEYS[1] };
    const { code, json } = await as(other, 'store', 'trust-key', '--reason', 'lost with the disk', '--json');
    expect(code).toBe(0);
    expect((await binding()).at(-1)).toEqual([
      'MasterKeyAdded',
      { fingerprint: json.fingerprint, master_key_id: expect.any(String), reason: 'lost with the disk' },
    ]);
    expect((await as(other, 'account', 'integration', '7', 'on')).code).toBe(0);
  });

  test.each([['account', 'list'], ['audit'], ['verify'], ['projection', 'status'], ['delivery', 'list']])(
    'is not made by a command that only reads: fuel %s',
    async (...args) => {
      const { fuel, dataDir } = start();
      const { code, stdout, stderr } = await fuel(...args);
      expect([code, stdout, stderr]).toEqual([
        1,
        '',
        expect.stringContaining(`There is no store in ${dataDir}.`),
      ]);
      expect(existsSync(dataDir)).toBe(false);
    },
  );

  test('is made by a command that records, which says where', async () => {
    const { fuel, dataDir } = start();
    expect((await fuel(...OPEN)).stderr).toBe(`Created a new store in ${dataDir}\n`);
    expect((await fuel('account', 'integration', '7', 'on')).stderr).toBe('');
  });
});

test('a store without a name gets one before a master key is recorded', async () => {
  const { store, clock, author } = openPushStores();
  const config = loadConfig({ FUEL_MASTER_KEY: KEYS[1] }, 'command');
  await trustMasterKey(store, config, { author, clock, reason: 'lost' });
  const types = (await store.readStream('operations')).map(({ type }) => type);
  expect(types).toEqual(['StoreNamed', 'MasterKeyAdded']);
});

test('of two processes that bind a new store at once the second is judged by what the first has recorded', async () => {
  const { store, clock } = openPushStores();
  const [staging, production] = ['staging', 'production'].map((environment, at) =>
    loadConfig({ FUEL_ENVIRONMENT: environment, FUEL_MASTER_KEY: KEYS[at] }, 'command'),
  ) as [Config, Config];
  let isFirst = true;
  const raced = replacing(store, {
    async append(appends) {
      const binds = appends.some(({ events }) => events.some(({ type }) => type === 'EnvironmentSet'));
      if (binds && isFirst) {
        isFirst = false;
        await bindStore(store, production, { clock });
      }
      return store.append(appends);
    },
  });
  await expect(bindStore(raced, staging, { clock })).rejects.toMatchObject({ code: 'STORE_MISMATCH' });
  const types = (await store.readStream('operations')).map(({ type }) => type);
  expect(types).toEqual(['StoreNamed', 'EnvironmentSet', 'MasterKeyAdded']);
});

test('a master key may be one of the store’s unless others are recorded', () => {
  expect(mayHaveHad([], 'a')).toBe(true);
  expect(mayHaveHad([{ fingerprint: 'x', id: 'b' }], 'a')).toBe(false);
  expect(mayHaveHad([{ fingerprint: 'x', id: 'a' }], 'a')).toBe(true);
});

describe('a webhook secret that cannot be read', () => {
  /** Starts with the second master key, after these events and changes to the store. Returns the refusal, if any. */
  async function startWith(
    events: readonly AccountEvent[],
    done: (store: ReturnType<typeof openPushStores>) => Promise<unknown> = async () => undefined,
  ) {
    const stores = openPushStores();
    const config = loadConfig({ FUEL_MASTER_KEY: KEYS[0] }, 'command');
    await bindStore(stores.store, config, stores);
    await done(stores);
    const lines: Record<string, unknown>[] = [];
    const masterKeys = new MasterKeys([Buffer.from(KEYS[1], 'base64')]);
    const judged = assertSecretsReadable(stores.store, await rowsAfter(...events), {
      masterKeys,
      log: memoryLog(lines),
    });
    const outcome = await judged.then(
      () => 'starts',
      ({ code }: { readonly code: string }) => code,
    );
    return { outcome, levels: lines.map(({ level }) => level) };
  }
  const former = new MasterKeys([Buffer.from(KEYS[0], 'base64')]);
  const secret = former.encryptSecret({ prefix: PREFIX, secret: 'S'.repeat(43) });
  const signing = [opened(), keyIssued(), webhookSet({ secret })];

  test('ends the start, unless its key is switched off or has no webhook', async () => {
    expect(await startWith(signing)).toEqual({ outcome: 'SECRET_UNREADABLE', levels: [] });
    for (const type of ['KeySwitchedOff', 'WebhookRemoved'] as const)
      expect(await startWith([...signing, onKey(type)])).toEqual({ outcome: 'starts', levels: [] });
  });

  test('is logged once a loss is recorded, also where a further key was added since', async () => {
    const lost = await startWith(signing, async ({ store, clock, author }) => {
      const with2 = loadConfig({ FUEL_MASTER_KEY: KEYS[1] }, 'command');
      await trustMasterKey(store, with2, { author, clock, reason: 'lost' });
      const third = Buffer.alloc(32, 3).toString('base64');
      await bindStore(store, loadConfig({ FUEL_MASTER_KEY: `${third},${KEYS[1]}` }, 'command'), { clock });
    });
    expect(lost).toEqual({ outcome: 'starts', levels: [50] });
  });
});
