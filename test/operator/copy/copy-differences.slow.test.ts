import { describe, expect, test } from 'vitest';
import { assertNoUnfinishedCopy } from '../../../src/service/stores/unfinished-copy.ts';
import { record } from '../../support/event-store/store-events.ts';
import { seal } from '../../support/seals/sealing.ts';
import {
  copyFrom,
  type EmbeddedEnd,
  newEnd,
  operations,
  RealisticStore,
  sample,
} from '../../support/store-copy/store-copy.ts';

const AT_THE_END = { kind: 'checkpoint', size: 5, reason: expect.any(String) };

describe('events that the target should not have', () => {
  const begun = async (): Promise<[EmbeddedEnd, EmbeddedEnd]> => {
    const [source, target] = [await sample(), newEnd()];
    const [first] = await operations(source);
    if (first === undefined) throw new Error('no name');
    const { id, type, data, metadata } = first;
    const events = [{ id, type, data, metadata: metadata as never }];
    await target.store.append([{ stream: 'operations', expected: 'none', events }]);
    return [source, target];
  };

  test('are reported, and the copy is not completed', async () => {
    const [source, target] = await begun();
    await record(target.store, 'account-9', 'its own');
    expect((await copyFrom(source, target)).fault).toEqual(AT_THE_END);
    await record(target.store, 'transaction-9', 'its own');
    await record(source.store, 'transaction-9', 'another');
    await expect(copyFrom(source, target)).rejects.toThrow('already has other events in place of 1 events');
    expect(await operations(target)).toHaveLength(1);
    await expect(assertNoUnfinishedCopy(target.coordination)).rejects.toMatchObject({ code: 'REFUSED' });
  });

  test.each([
    ['type', { type: 'AccountFrozen' }],
    ['data', { data: { account_id: 1, name: 'changed' } }],
    ['metadata', { metadata: { at: '2026-09-03T08:00:00.000Z' } as never }],
  ])('are told by their %s', async (what, change) => {
    const [source, target] = await begun();
    const [event] = await source.store.readStream('account-7');
    if (event === undefined) throw new Error('no event');
    const { id, type, data, metadata } = event;
    const changed = { id, type, data, metadata: metadata as never, ...change };
    await target.store.append([{ stream: 'account-7', expected: 'none', events: [changed] }]);
    expect([what, (await copyFrom(source, target)).fault]).toEqual([what, AT_THE_END]);
    expect(await operations(target)).toHaveLength(1);
  });

  test('are named by the seal that they break', async () => {
    const [source, target] = await begun();
    await seal(source.store);
    await record(target.store, 'account-9', 'its own');
    const { fault } = await copyFrom(source, target);
    expect(fault).toMatchObject({ kind: 'inserted', place: 'account-9@0', index: 1 });
  });

  test('that the target lost during the copy are reported too', async () => {
    const [source, into] = [await sample(), newEnd()];
    const lossy = new RealisticStore(into.store);
    const append = lossy.append.bind(lossy);
    lossy.append = async (appends) => {
      const results = await append(appends.filter(({ stream }) => stream !== 'transaction-3'));
      return appends.map((_, index) => results[index] ?? { kind: 'appended', revision: 0, position: 1 });
    };
    expect((await copyFrom(source, { ...into, store: lossy })).fault).toEqual({
      ...AT_THE_END,
      reason: expect.stringContaining('its end was cut off'),
    });
    expect(await operations(into)).toHaveLength(1);
    await expect(assertNoUnfinishedCopy(into.coordination)).rejects.toMatchObject({ code: 'REFUSED' });
  });
});
