import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteEventStore } from '../../../src/engines/sqlite/event-store/event-store.ts';
import { type RecordLinesOptions, recordLines } from '../../../src/operator/lines/record-lines.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { interposed } from '../../support/interposed.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

type Options = RecordLinesOptions<string, { readonly type: 'AccountOpened'; readonly data: unknown }>;

/** Records a line for each text, two at a time, each in a separate stream; `steps` notes what happens. */
function recording(texts: readonly string[], options: Partial<Options> = {}) {
  const clock = new FakeClock();
  const store = openSqliteEventStore({ path: join(temporaryFolder(), 'events.db'), clock });
  onTestFinished(() => store.close());
  const steps: string[] = [];
  async function* lines() {
    for (const [index, text] of texts.entries()) {
      const place = { number: index + 1, characters: 1 };
      yield [{ ...place, ok: true as const, stream: `account-${text}`, content: text }];
    }
  }
  const recorded = recordLines({
    store: interposed(store, ['append'], () => void steps.push('append')),
    lines: lines(),
    author: { actor: 'test', command: 'test' },
    clock,
    decider: () => (name) => ({ kind: 'events', events: [{ type: 'AccountOpened', data: { name } }] }),
    batchCharacters: 2,
    onRefused: (number, reason) => void steps.push(`${number} ${reason}`),
    onProgress: ({ recorded: count }) => void steps.push(`progress ${count}`),
    signal: new AbortController().signal,
    ...options,
  });
  return { recorded, steps, store };
}

test('what is to follow a line that was recorded has ended before the next one’s begins, and the next batch', async () => {
  const followed: string[] = [];
  const { recorded, steps } = recording(['a', 'b', 'c'], {
    onRecorded: async (name) => {
      await nextTurn();
      steps.push(`after ${name}`);
      followed.push(name);
    },
  });
  expect(await recorded).toEqual({ recorded: 3, unchanged: 0, refused: 0 });
  expect(steps).toEqual(['append', 'after a', 'after b', 'progress 2', 'append', 'after c', 'progress 3']);
});

test('where that fails the work ends with its error', async () => {
  const { recorded, steps } = recording(['a', 'b', 'c'], {
    onRecorded: () => Promise.reject(new Error('not shown')),
  });
  await expect(recorded).rejects.toThrow('not shown');
  expect(steps).toEqual(['append']);
});

async function* broken(): AsyncGenerator<never[]> {
  yield [];
  throw new Error('the disk is gone');
}

test('a work that is aborted ends between two batches, and a failure of another kind is not taken for that', async () => {
  const stopping = new AbortController();
  const { recorded, steps } = recording(['a', 'b', 'c'], {
    signal: stopping.signal,
    onRecorded: async () => stopping.abort(),
  });
  expect(await recorded).toMatchObject({ recorded: 2 });
  expect(steps).toEqual(['append', 'progress 2']);
  const failing = recording(['a'], {
    signal: stopping.signal,
    lines: broken(),
  });
  await expect(failing.recorded).rejects.toThrow('the disk is gone');
});
