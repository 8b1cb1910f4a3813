import { describe, expect, test } from 'vitest';
import { readAccountEvent } from '../../../src/accounts/directory/apply-to-directory.ts';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { loadDirectory } from '../../../src/accounts/directory/load-directory.ts';
import { packedRow } from '../../../src/accounts/directory/rows/packed-row.ts';
import { FuelError } from '../../../src/base/errors.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { contentOf } from '../../support/accounts/directory-content.ts';
import { saveAll, saveHead } from '../../support/accounts/stored-directory.ts';
import { until } from '../../support/waiting.ts';
import { contacts, type Machine, machine, storedWith, watched } from './live-machine.ts';

const anchor = (position: number) => ({ position, stream: 'account-9', revision: 0, recordedAtMs: 1 });

/** Saves what a process would save that could read only some of the events. */
async function saveAs(m: Machine, couldRead: (event: RecordedEvent) => boolean): Promise<number> {
  const directory = new Directory();
  const events = (await m.store.readStreams(['account-7', 'account-9'])).flat();
  events.sort((a, b) => a.position - b.position);
  for (const recorded of events) {
    const decoded = couldRead(recorded)
      ? readAccountEvent(recorded)
      : ({ ok: false, reason: 'new' } as const);
    directory.apply({ ...recorded, decoded });
  }
  return saveAll(m, directory);
}

describe('a process that starts', () => {
  test('starts from what another has saved, and reads only what comes after it', async () => {
    const m = machine();
    await m.append('account-7', opened(), keyIssued(), webhookSet());
    const offAt = await m.append('account-7', onKey('KeySwitchedOff'));
    await m.append('account-7', onKey('KeySwitchedOn'));
    const enabledAt = await m.append('account-7', onKey('WebhookEnabled'));
    await m.openNine();
    await m.recordMany();
    const first = await m.startAndCatchUp();
    await until(async () => (await m.savedAt()) !== undefined);
    await first.stop();
    const savedAt = await m.savedAt();
    const lastAt = await m.append('account-9', contacts(0));

    const second = await m.startAndCatchUp();
    expect(second.begunAt).toEqual([savedAt]);
    expect(contentOf(second.live.directory)).toEqual(contentOf(await loadDirectory(m.store)));
    expect(second.told.map(({ event, position }) => [event.type, position])).toEqual([
      ['KeySwitchedOff', offAt],
      ['WebhookEnabled', enabledAt],
      ['AccountContactsSet', lastAt],
    ]);
    const all = new Map(first.told.map((placed) => [placed.position, placed]));
    for (const placed of second.told.slice(0, 2)) expect(placed).toEqual(all.get(placed.position));
  });

  test.each<[string, RegExp, (m: Machine) => Promise<void>]>([
    ['of an older version', /has version -1/, (m) => saveHead(m.rows, { version: -1 })],
    ['of another event store', /event store elsewhere/, (m) => saveHead(m.rows, { storeId: 'elsewhere' })],
    ['from behind the end of the log', /the event store ends at/, (m) => saveHead(m.rows, { position: 1e9 })],
    [
      'whose accounts are from behind it',
      /the event store ends at/,
      (m) => saveHead(m.rows, { anchor: anchor(1e9) }),
    ],
    [
      'of which something was changed',
      /not as it was saved/,
      async (m) => {
        const checkpoint = await m.rows.checkpoint();
        if (checkpoint !== undefined) await m.rows.save([], { ...checkpoint, mac: 'x' }, checkpoint.mac);
      },
    ],
    [
      'of a log that has gone another way since',
      /event 0 of account-9 is another one/,
      (m) => saveHead(m.rows, { anchor: anchor(1) }),
    ],
    [
      'of a copy of this log, with the same events at other positions',
      /event 1000 of account-9 is another one/,
      async ({ rows }) => {
        const { anchor } = (await rows.checkpoint()) ?? {};
        if (anchor !== undefined)
          await saveHead(rows, { anchor: { ...anchor, position: anchor.position - 1 } });
      },
    ],
  ])(
    'does not use a stored directory %s: it says why, reads every event and replaces it',
    async (_, reason, spoil) => {
      const m = machine();
      await m.openNine();
      await m.recordMany();
      await saveAs(m, () => true);
      await spoil(m);
      const { live, begunAt, lines, said } = await m.startAndCatchUp();
      expect(begunAt).toEqual([0]);
      expect(live.directory.account(9)?.revision).toBe(1_000);
      expect(lines.map(({ reason }) => reason)).toContainEqual(expect.stringMatching(reason));
      await until(() => said('directory saved') > 0);
      const { begunAt: next } = await m.startAndCatchUp();
      expect(next).toEqual([await m.savedAt()]);
    },
  );

  test('misses nothing where the log was replaced by an older copy, which has grown past where it was saved', async () => {
    const m = machine();
    await m.append('account-7', opened(), keyIssued());
    const anchorAt = await saveAs(m, () => true);
    await saveHead(m.rows, { position: anchorAt + 2 }); // as after two other events, which are lost
    await m.append('account-7', onKey('KeySwitchedOff'));
    await m.openNine();
    const { live, begunAt } = await m.startAndCatchUp();
    expect(begunAt).toEqual([anchorAt]);
    expect(live.directory.key(PREFIX)?.key.active).toBe(false);
  });

  test('does not switch a key on again where its older row was put back, and soon replaces that', async () => {
    const m = machine();
    await m.append('account-7', opened(), keyIssued());
    await saveAs(m, () => true);
    const older = [...(await loadDirectory(m.store)).states()].map(packedRow);
    await m.append('account-7', onKey('KeySwitchedOff'));
    await saveAs(m, () => true);
    const checkpoint = await m.rows.checkpoint();
    if (checkpoint === undefined) throw new Error('nothing was saved');
    await m.rows.save(older, checkpoint, checkpoint.mac);
    const load = () => m.stored.load(m.store, m.clock);
    expect(await load()).toMatchObject({
      kind: 'unusable',
      reason: expect.stringContaining('not as it was saved'),
    });
    const { live, said } = await m.startAndCatchUp();
    expect(live.directory.key(PREFIX)?.key.active).toBe(false);
    await until(() => said('directory saved') > 0);
    expect((await load()).kind).toBe('loaded');
    expect(contentOf(await loadDirectory(m.store, m.stored))).toEqual(
      contentOf(await loadDirectory(m.store)),
    );
    m.clock.advance(30_000);
    await m.append('account-7', onKey('KeySwitchedOn'));
    await until(() => live.directory.key(PREFIX)?.key.active === true);
    expect((await m.rows.checkpoint())?.position).toBe(checkpoint.position); // from now on as usual, a minute later
  });

  test('waits while the stored directory cannot be reached, rather than read a long log', async () => {
    const m = machine();
    await m.openNine();
    const position = await saveAs(m, () => true);
    let away = 2;
    const { begunAt } = await m.startAndCatchUp({
      async load(...all) {
        if (away-- > 0) throw new FuelError('STORE_UNAVAILABLE', 'away');
        return m.stored.load(...all);
      },
    });
    expect(begunAt).toEqual([position]);
  });
});

describe('an account that was closed by an event which the process that saved could not read', () => {
  const isSecond = ({ revision }: RecordedEvent): boolean => revision === 1;

  test('is open again where this process can read it, and what that tells is told', async () => {
    const m = machine();
    const second = keyIssued({ prefix: 'klmnopqrst' });
    await m.append('account-7', opened(), keyIssued(), second, onKey('KeySwitchedOff'));
    await saveAs(m, (event) => !isSecond(event));
    const { live, told } = await m.startAndCatchUp();
    expect(live.directory.account(7)).toMatchObject({ unreadable: null, revision: 3 });
    expect(live.directory.key(PREFIX)?.key).toMatchObject({ active: false });
    expect(live.directory.key('klmnopqrst')?.entry.id).toBe(7);
    expect(told.map(({ event }) => event.type)).toEqual(['KeySwitchedOff']);
  });

  test('stays closed where this process cannot read it either', async () => {
    const m = machine();
    await m.append('account-7', opened(), onKey('KeySwitchedOn'), keyIssued());
    await saveAs(m, () => true);
    const { live } = await m.startAndCatchUp();
    expect(live.directory.account(7)?.unreadable?.reason).toMatch(/never issued/);
    expect(live.directory.key(PREFIX)?.entry).toMatchObject({ id: 7, account: undefined });
  });

  test('stays closed where its stream no longer has its events', async () => {
    const m = machine();
    await m.append('account-7', opened(), keyIssued(), onKey('KeySwitchedOff'));
    await m.openNine();
    await saveAs(m, (event) => !(event.stream === 'account-7' && isSecond(event)));
    await m.store.erase('account-7');
    const { live } = await m.startAndCatchUp();
    expect(live.directory.account(7)).toMatchObject({ account: undefined, unreadable: { reason: 'new' } });
  });
});

describe('a command', () => {
  test('finds the same accounts with the stored directory as without it', async () => {
    const m = machine();
    await m.append('account-7', opened(), keyIssued());
    const position = await saveAs(m, () => true);
    await m.append('account-7', onKey('KeySwitchedOff'));
    const begunAt: number[] = [];
    const directory = await loadDirectory(watched(m.store, begunAt), m.stored);
    expect(begunAt).toEqual([position]);
    expect(contentOf(directory)).toEqual(contentOf(await loadDirectory(m.store)));
  });

  test('reads the events where the stored directory cannot be reached', async () => {
    const m = machine();
    await m.append('account-7', opened());
    const away = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'away'));
    const directory = await loadDirectory(m.store, storedWith(m.stored, { load: away }));
    expect(directory.account(7)?.account?.name).toBe('Harbour Freight');
  });
});
