import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import {
  addressOf,
  assertNotMoved,
  isMark,
  markMoved,
  moveInLog,
  unmark,
} from '../../../src/service/stores/moved-store.ts';
import { record } from '../../support/event-store/store-events.ts';
import { commandLine } from '../../support/service/command-line.ts';
import { copyFrom, newEnd, operations, PROVEN, sample } from '../../support/store-copy/store-copy.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { confirmed, linesOf } from '../../support/transactions/e2e-samples.ts';

const AUTHOR = { actor: 'test', command: 'fuel store copy' };
const TO = ['esdb://node:2113', 'mongodb://mongo'];
const EMBEDDED = { embedded: ['store', 'queue'] };
/** A configuration whose log is on a server while other stores are embedded. */
const REMOTE_LOG = { embedded: ['queue'] };
const MOVED = {
  code: 'STORE_MOVED',
  message: expect.stringContaining('esdb://node:2113 and mongodb://mongo'),
};

test.each([
  ['esdb://admin:p@ss/w0rd@n1:2113,n2:2113?tls=true', 'esdb://n1:2113,n2:2113'],
  [
    'mongodb+srv://user:secret@mongo.example/fuel?authMechanismProperties=TOKEN:x',
    'mongodb+srv://mongo.example',
  ],
  ['esdb+discover://cluster.example', 'esdb+discover://cluster.example'],
])('an address has neither credentials nor options: %s', (url, address) => {
  expect(addressOf(url)).toBe(address);
});

/** A source, and its copy with the source's mark. `fails` ends the work before a step of marking. */
async function moving() {
  const [source, target, folder] = [await sample(), newEnd(), temporaryFolder()];
  const mark = { folder, store: source.store, author: AUTHOR, clock: systemClock };
  const copy = (fails: 'before the log' | 'before the folder' | 'never' = 'never') =>
    copyFrom(source, target, {
      async markMoved() {
        if (fails === 'before the log') throw new FuelError('STORE_UNAVAILABLE', 'ended');
        await markMoved(TO, fails === 'never' ? mark : { ...mark, folder: join(folder, 'gone') });
      },
    });
  const isRefused = () =>
    assertNotMoved({ FUEL_DATA_DIR: folder, ...EMBEDDED }, source.store).then(
      () => false,
      (error: FuelError) => error.code === 'STORE_MOVED',
    );
  return { source, target, folder, mark, copy, isRefused };
}

describe('a store that was copied', () => {
  test('is marked as moved in its log, and in its folder by a file that only its owner can read, once', async () => {
    const { source, target, folder, mark, copy, isRefused } = await moving();
    expect(await isRefused()).toBe(false);
    writeFileSync(join(folder, 'moved.json.partial'), 'of a run that was killed');
    expect(await copy()).toMatchObject({ copiedBefore: false, ...PROVEN });
    expect(await isRefused()).toBe(true);
    expect(await moveInLog(source.store)).toEqual({ to: TO, at: expect.any(String) });
    expect(JSON.parse(readFileSync(join(folder, 'moved.json'), 'utf8'))).toMatchObject({ to: TO });
    expect(statSync(join(folder, 'moved.json')).mode & 0o777).toBe(0o600);
    expect(await copy()).toMatchObject({ copiedBefore: true, ...PROVEN });
    expect((await operations(source)).map(({ type }) => type)).toEqual(['StoreNamed', 'StoreMoved']);
    expect(await moveInLog(target.store)).toBeUndefined();
    const text = readFileSync(join(folder, 'moved.json'), 'utf8');
    await markMoved(['esdb://another-name-of-it:2113'], mark);
    expect(readFileSync(join(folder, 'moved.json'), 'utf8')).toBe(text);
  });

  test.each(['before the log', 'before the folder'] as const)(
    'is marked by the next run where one ended %s, and nothing starts on the copy before',
    async (fails) => {
      const { target, folder, copy, isRefused } = await moving();
      await expect(copy(fails)).rejects.toThrow();
      expect(await target.coordination.holder('store copy')).toBeDefined();
      expect(await isRefused()).toBe(fails === 'before the folder');
      expect(existsSync(join(folder, 'moved.json'))).toBe(false);
      expect(await copy()).toMatchObject({ copiedBefore: true, ...PROVEN });
      expect(await isRefused()).toBe(true);
      expect(existsSync(join(folder, 'moved.json'))).toBe(true);
      expect(await target.coordination.holder('store copy')).toBeUndefined();
    },
  );

  test('is not marked by a further run that finds what the copy lacks', async () => {
    const { source, copy, isRefused } = await moving();
    await expect(copy('before the log')).rejects.toThrow();
    await record(source.store, 'transaction-8', 'since then');
    expect((await copy()).fault).toMatchObject({ kind: 'checkpoint' });
    expect(await isRefused()).toBe(false);
  });

  test('is not copied to another target as well', async () => {
    const { source, copy } = await moving();
    await copy();
    await expect(copyFrom(source, newEnd())).rejects.toMatchObject(MOVED);
  });

  test('is recognised by its folder alone, where the log is gone or belongs to an engine', async () => {
    const { folder, copy } = await moving();
    await copy();
    const place = { FUEL_DATA_DIR: folder, ...EMBEDDED };
    await expect(assertNotMoved(place, undefined)).rejects.toMatchObject(MOVED);
    await expect(assertNotMoved({ ...place, ...REMOTE_LOG }, undefined)).rejects.toMatchObject(MOVED);
    await assertNotMoved({ FUEL_DATA_DIR: folder, embedded: [] }, undefined);
    writeFileSync(join(folder, 'moved.json'), 'half a fi');
    await expect(assertNotMoved(place, undefined)).rejects.toMatchObject({ code: 'STORE_MOVED' });
  });

  test('is judged by the marks of its own log alone that can be read', async () => {
    const [source, folder] = [await sample(), temporaryFolder()];
    const place = { FUEL_DATA_DIR: folder, ...EMBEDDED };
    const unreadable = newEvent({ type: 'StoreMoved', data: {} as never }, AUTHOR, 0);
    await source.store.append([{ stream: 'operations', expected: 'any', events: [unreadable] }]);
    await assertNotMoved(place, source.store);
    await markMoved(TO, { folder, store: source.store, author: AUTHOR, clock: systemClock });
    rmSync(join(folder, 'moved.json'));
    await expect(assertNotMoved(place, source.store)).rejects.toMatchObject(MOVED);
    await assertNotMoved({ ...place, ...REMOTE_LOG }, source.store); // the log of an engine is not marked
    expect(isMark({ stream: 'transaction-8', type: 'StoreMoved' })).toBe(false);
  });

  test('names what was recorded between the last look at it and its mark', async () => {
    const [source, target] = [await sample(), newEnd()];
    const { late } = await copyFrom(source, target, {
      async markMoved() {
        await record(source.store, 'transaction-8', 'in the last moment');
      },
    });
    expect(late).toMatchObject([{ stream: 'transaction-8', revision: 0 }]);
  });

  test('takes changes again once it is unmarked, whose second run finishes what the first left', async () => {
    const { source, folder, mark, copy, isRefused } = await moving();
    await copy();
    vi.spyOn(source.store, 'append').mockRejectedValueOnce(new Error('full'));
    await expect(unmark('not used', mark)).rejects.toThrow('full');
    expect(existsSync(join(folder, 'moved.json'))).toBe(true);
    await unmark('not used', { ...mark, folder: join(folder, 'gone') }); // it ended before the folder was unmarked
    expect(await isRefused()).toBe(true);
    expect(await unmark('not used', mark)).toMatchObject({ to: TO });
    expect(await isRefused()).toBe(false);
    await expect(unmark('not used', mark)).rejects.toMatchObject({ code: 'REFUSED' });
    const types = (await operations(source)).map(({ type }) => type);
    expect(types).toEqual(['StoreNamed', 'StoreMoved', 'StoreUnmarked']);
    const second = newEnd();
    expect(await copyFrom(source, second)).toMatchObject({ copiedBefore: false, ...PROVEN });
    expect(await moveInLog(second.store)).toBeUndefined();
  });
});

describe('the command line on a store that was moved', () => {
  async function moved() {
    const cli = commandLine();
    await cli.done('account', 'open', '7', '--name', 'Seven');
    const { prefix } = (await cli.done('key', 'issue', '7')) as { prefix: string };
    const folder = process.env.FUEL_DATA_DIR ?? '';
    await cli.withEngines((engines) =>
      markMoved(TO, { folder, store: engines.store(), author: AUTHOR, clock: systemClock }),
    );
    return { ...cli, folder, prefix };
  }

  test('refuses what changes something, says where it went, and changes nothing', async () => {
    const { fuel, file, prefix, eventsOf } = await moved();
    const before = [await eventsOf('account-7'), await eventsOf('operations')];
    for (const args of [
      ['key', 'off', prefix, '--reason', 'leaked', '--wait'],
      ['key', 'issue', '7'],
      ['account', 'open', '8', '--name', 'Eight'],
      ['transaction', 'import', file('lines.jsonl', linesOf([confirmed(501)]))],
      ['transaction', 'erase', '501', '--reason', 'asked for', '--yes'],
      ['projection', 'rebuild', 'transactions'],
      ['projection', 'parked', 'retry', '--all'],
      ['verify', '--repair'],
      ['delivery', 'redeliver', '--failed', '--key', prefix],
      ['key', 'rewrap'],
      ['store', 'trust-key', '--reason', 'lost'],
    ]) {
      const { code, stdout, stderr } = await fuel(...args);
      expect([args, code, stdout]).toEqual([args, 1, '']);
      expect(stderr).toMatch(/esdb:\/\/node:2113 and mongodb:\/\/mongo.*fuel store unmark.*STORE_MOVED/);
    }
    expect([await eventsOf('account-7'), await eventsOf('operations')]).toEqual(before);
  });

  test('goes on reading, and doctor says it', async () => {
    const { fuel, done } = await moved();
    for (const args of [
      ['key', 'list'],
      ['account', 'show', '7'],
      ['audit'],
      ['verify'],
      ['projection', 'status'],
    ])
      expect([args, (await fuel(...args)).code]).toEqual([args, 0]);
    const { lines } = await fuel('doctor', '--json');
    const store = (lines as { check: string }[]).find(({ check }) => check === 'store');
    expect(store).toMatchObject({
      ok: false,
      detail: expect.stringContaining('esdb://node:2113'),
      do: expect.stringContaining('fuel store unmark'),
    });
    expect(await done('store', 'unmark', '--reason', 'not used')).toEqual({ unmarked: true, to: TO });
    expect((await fuel('account', 'integration', '7', 'on')).code).toBe(0);
  });

  test('makes no new store in its folder either', async () => {
    const { fuel, folder } = await moved();
    rmSync(join(folder, 'events.db'));
    expect((await fuel('account', 'open', '8', '--name', 'Eight')).stderr).toContain('STORE_MOVED');
    expect(existsSync(join(folder, 'events.db'))).toBe(false);
    expect((await fuel('store', 'unmark', '--reason', 'begun anew')).code).toBe(0);
    expect((await fuel('account', 'open', '8', '--name', 'Eight')).code).toBe(0);
  });
});
