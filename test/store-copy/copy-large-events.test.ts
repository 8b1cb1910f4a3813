import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MAX_BATCH_BYTES } from '../../src/event-store/batch-bytes.ts';
import { openSqliteEventStore } from '../../src/event-store/sqlite/event-store.ts';
import { copyEvents } from '../../src/store-copy/copy-events.ts';
import { named } from '../support/event-store/store-events.ts';
import { storeWith } from '../support/event-store/store-with.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('large events are copied in batches of a few MiB, also where a copy goes on', async () => {
  const [source, target] = [0, 1].map(() => {
    const store = openSqliteEventStore({
      path: join(temporaryFolder(), 'events.db'),
      clock: new FakeClock(),
    });
    onTestFinished(() => store.close());
    return store;
  });
  if (source === undefined || target === undefined) throw new Error('two stores were opened');
  const first = named('first');
  for (const store of [source, target]) {
    await store.append([{ stream: 'operations', expected: 'none', events: [first] }]);
  }
  for (let index = 0; index < 400; index++) {
    const event = named(`${index} ${'x'.repeat(100_000)}`);
    await source.append([{ stream: `account-${index}`, expected: 'none', events: [event] }]);
  }
  const sizes: number[] = [];
  const measured = storeWith(target, {
    append: (appends) => {
      sizes.push(JSON.stringify(appends).length);
      return target.append(appends);
    },
  });
  const copy = () =>
    copyEvents({
      source,
      target: measured,
      erasedStreams: [],
      first: 'operations@0',
      onProgress: () => undefined,
    });
  expect(await copy()).toMatchObject({ events: 401, faults: [] });
  expect(Math.max(...sizes)).toBeLessThan(MAX_BATCH_BYTES + 110_000);
  expect(await copy()).toMatchObject({ events: 401, faults: [] });
}, 20_000);
