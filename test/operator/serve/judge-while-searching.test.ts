import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Damage } from '../../../src/event-store/event-store.ts';
import { judgeWhileSearching } from '../../../src/operator/serve/judge-while-searching.ts';

const DAMAGE: readonly Damage[] = [{ position: 7, event: undefined, reason: 'garbled', isCertain: true }];

/** A search and a judgement, each of which ends when it is told to; `asked` has the damage of each judgement. */
function controlled() {
  const search = Promise.withResolvers<readonly Damage[]>();
  const first = Promise.withResolvers<string>();
  const asked: (readonly Damage[])[] = [];
  const judge = (damage: readonly Damage[]): Promise<string> => {
    asked.push(damage);
    return asked.length === 1 ? first.promise : Promise.resolve('again');
  };
  let isOver = false;
  const result = judgeWhileSearching(search.promise, judge);
  const end = (): void => {
    isOver = true;
  };
  result.then(end, end);
  const isPending = async (): Promise<boolean> => {
    await nextTurn();
    return !isOver;
  };
  return { search, first, asked, result, isPending };
}

describe('the log is judged while damage is searched for', () => {
  test('once, where there is none, whichever ends first', async () => {
    for (const order of ['search', 'judgement']) {
      const { search, first, asked, result, isPending } = controlled();
      const ends = [() => search.resolve([]), () => first.resolve('once')];
      if (order === 'judgement') ends.reverse();
      ends[0]?.();
      expect(await isPending()).toBe(true);
      ends[1]?.();
      expect(await result).toEqual({ damage: [], judges: 'once' });
      expect(asked).toEqual([[]]);
    }
  });

  test('again with the damage, where there is some, even if the first judgement failed by it', async () => {
    for (const end of ['resolve', 'reject'] as const) {
      const { search, first, asked, result, isPending } = controlled();
      search.resolve(DAMAGE);
      expect(await isPending()).toBe(true);
      first[end]('once');
      expect(await result).toEqual({ damage: DAMAGE, judges: 'again' });
      expect(asked).toEqual([[], DAMAGE]);
    }
  });

  test('and an error of one is reported when the other has ended too', async () => {
    for (const failing of ['search', 'first'] as const) {
      const { search, first, asked, result, isPending } = controlled();
      const parts = { search, first };
      parts[failing].reject(new Error(`${failing} failed`));
      expect(await isPending()).toBe(true);
      if (failing === 'search') first.resolve('once');
      else search.resolve([]);
      await expect(result).rejects.toThrow(`${failing} failed`);
      expect(asked).toHaveLength(1);
    }
  });
});
