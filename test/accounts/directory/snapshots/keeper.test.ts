import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { DirectorySnapshotKeeper } from '../../../../src/accounts/directory/snapshots/keeper.ts';
import {
  DIRECTORY_SNAPSHOT_VERSION,
  type SnapshotContent,
} from '../../../../src/accounts/directory/snapshots/snapshot.ts';
import type {
  DirectorySnapshots,
  SnapshotHeader,
} from '../../../../src/accounts/directory/snapshots/snapshots.ts';
import { openSqliteCoordination } from '../../../../src/coordination/sqlite.ts';
import { opened } from '../../../support/accounts/account-samples.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { memoryLog } from '../../../support/service/api.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const MANY = 1_000;
const ANCHOR = { position: 1, stream: 'account-7', revision: 0, eventId: 'an event' };

/** A keeper whose directory is at `at.position`, and snapshots that do what a test says. */
function keeper(steps: Partial<Pick<DirectorySnapshots, 'load' | 'save'>> = {}) {
  const clock = new FakeClock();
  const coordination = openSqliteCoordination({ path: join(temporaryFolder(), 'control.db'), clock });
  onTestFinished(() => coordination.close());
  const at = { position: 10 };
  const saved: SnapshotHeader[] = [];
  const lines: Record<string, unknown>[] = [];
  const stopping = new AbortController();
  const content = (): SnapshotContent & { position: number } => ({
    ...at,
    anchor: ANCHOR,
    events: [{ event: opened(), position: 1, atMs: 0 }], // a second part
    accounts: [],
  });
  const made = new DirectorySnapshotKeeper({
    snapshots: {
      load: async () => undefined,
      async save(header) {
        saved.push(header);
      },
      close: async () => undefined,
      ...steps,
    },
    ...{ coordination, holder: 'this', storeId: async () => 'store', content, clock },
    log: memoryLog(lines),
    signal: stopping.signal,
  });
  /** So many events were applied; resolves when what is saved for them is saved. */
  const applied = async (events: number): Promise<void> => {
    made.applied(events, true);
    await made.settle();
  };
  const messages = () => lines.map(({ msg }) => msg);
  return { made, clock, coordination, at, saved, messages, applied, stop: () => stopping.abort() };
}

test('events that are applied while a snapshot is saved count for the next one', async () => {
  const headers: SnapshotHeader[] = [];
  const k = keeper({
    async save(header) {
      headers.push(header);
      if (headers.length === 1) k.made.applied(MANY, true);
    },
  });
  await k.applied(MANY);
  await k.applied(0);
  expect(headers).toHaveLength(2);
  await k.applied(0);
  expect(headers).toHaveLength(2);
});

test('what could not be saved is saved a minute later, without a further event', async () => {
  let tries = 0;
  const k = keeper({
    async save() {
      tries += 1;
      if (tries === 1) throw new Error('no space');
    },
  });
  await k.applied(MANY);
  k.clock.advance(59_999);
  await k.applied(0);
  expect(tries).toBe(1);
  k.clock.advance(1);
  await k.applied(0);
  expect(tries).toBe(2);
  expect(k.messages()).toEqual([
    expect.stringContaining('could not be saved'),
    expect.stringContaining('snapshot saved'),
  ]);
});

test('what is saved is the directory as of after the stored snapshot was looked at', async () => {
  const k = keeper({
    async load() {
      k.at.position = 11;
      return undefined;
    },
  });
  await k.applied(MANY);
  expect(k.saved).toEqual([{ version: DIRECTORY_SNAPSHOT_VERSION, storeId: 'store', position: 11 }]);
});

test('a snapshot of another store or version is replaced, one of this store from another process is not', async () => {
  const header = { version: DIRECTORY_SNAPSHOT_VERSION, storeId: 'store', position: 9 };
  const parts = (async function* () {})();
  for (const [other, saves] of [
    [{ storeId: 'another' }, 1],
    [{ version: 1 }, 1],
    [{}, 0],
  ] as const) {
    const k = keeper({ load: async () => ({ header: { ...header, ...other }, parts }) });
    await k.applied(MANY);
    expect(k.saved).toHaveLength(saves);
  }
});

test('a save that the end of the process interrupts stops between two parts, and says nothing', async () => {
  let written = 0;
  const k = keeper({
    async save(_, parts) {
      for (const _part of parts) {
        written += 1;
        k.stop();
      }
    },
  });
  await k.applied(MANY);
  expect([written, k.messages()]).toEqual([1, []]);
  expect(await k.coordination.holder('directory-snapshot')).toBeUndefined();
});
