import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { CommitWatch } from '../../src/sqlite/commit-watch.ts';
import { Database } from '../../src/sqlite/database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until, within } from '../support/waiting.ts';

const SOURCE = join(import.meta.dirname, '../../src');
const THREAD = join(import.meta.dirname, '../support/event-store/watch-in-thread.ts');
const POLL_MS = 20;

class CountingBell {
  rings = 0;
  notify(): void {
    this.rings++;
  }
}

function useFakeIntervals(): void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

/** A file, and what commits to it as another process does. */
function file() {
  const path = join(temporaryFolder(), 'watched.db');
  const openings: Database[] = [];
  const watchOf = (options?: { readonly pollMs: number }): CommitWatch => {
    const db = new Database(path, { migrations: [], durability: 'normal' });
    openings.push(db);
    const watch = new CommitWatch(db, options);
    onTestFinished(() => {
      watch.close();
      db.close();
    });
    return watch;
  };
  const first = watchOf();
  const other = new DatabaseSync(path);
  onTestFinished(() => other.close());
  other.exec('CREATE TABLE things (name TEXT)');
  const commitElsewhere = (): void => other.exec("INSERT INTO things VALUES ('a')");
  return { path, openings, watch: first, watchOf, commitElsewhere };
}

describe('a commit of another process', () => {
  test('rings every wakeUp at the next look, once', () => {
    useFakeIntervals();
    const { watch, commitElsewhere } = file();
    const bells = [new CountingBell(), new CountingBell()];
    for (const wakeUp of bells) watch.add(wakeUp);
    vi.advanceTimersByTime(5 * POLL_MS);
    expect(bells.map(({ rings }) => rings)).toEqual([0, 0]); // what was there before is nothing new
    commitElsewhere();
    vi.advanceTimersByTime(POLL_MS - 1);
    expect(bells.map(({ rings }) => rings)).toEqual([0, 0]);
    vi.advanceTimersByTime(1);
    expect(bells.map(({ rings }) => rings)).toEqual([1, 1]);
    vi.advanceTimersByTime(5 * POLL_MS);
    expect(bells.map(({ rings }) => rings)).toEqual([1, 1]);
  });

  test('is passed on to the other threads, which look for themselves but seldom', async () => {
    const { watch, watchOf, commitElsewhere } = file();
    const far = new CountingBell();
    watchOf({ pollMs: 60_000 }).add(far);
    watch.add(new CountingBell());
    commitElsewhere();
    await until(async () => far.rings > 0, 5_000);
  });

  test('is noticed by a thread also where nobody passes it on', async () => {
    const { path, commitElsewhere } = file();
    const thread = new Worker(THREAD, { workerData: { path } });
    onTestFinished(async () => {
      await thread.terminate();
    });
    expect(await once(thread, 'message')).toEqual(['ready']);
    const rung = once(thread, 'message');
    commitElsewhere();
    expect(await within(rung, 3_000, 'the thread was not rung')).toEqual(['rung']);
  });
});

describe('a commit of this process', () => {
  test('rings every wakeUp at once, and those of other threads', async () => {
    const { watch, watchOf } = file();
    const [near, far] = [new CountingBell(), new CountingBell()];
    watch.add(near);
    watchOf({ pollMs: 60_000 }).add(far);
    watch.notify();
    expect(near.rings).toBe(1);
    await until(async () => far.rings === 1, 5_000);
  });

  test('rings nobody who watches another file', async () => {
    const [one, other] = [file(), file()];
    const [wakeUp, same] = [new CountingBell(), new CountingBell()];
    other.watch.add(wakeUp);
    one.watchOf({ pollMs: 60_000 }).add(same);
    one.watch.notify();
    await until(async () => same.rings === 1, 5_000);
    expect(wakeUp.rings).toBe(0);
  });
});

describe('the look for commits', () => {
  test('is one for all bells, ends with the last of them and begins anew with the next', () => {
    useFakeIntervals();
    const { watch, commitElsewhere } = file();
    const [one, other] = [new CountingBell(), new CountingBell()];
    expect(vi.getTimerCount()).toBe(0);
    watch.add(one);
    watch.add(other);
    expect(vi.getTimerCount()).toBe(1);
    watch.remove(one);
    expect(vi.getTimerCount()).toBe(1);
    watch.remove(other);
    expect(vi.getTimerCount()).toBe(0);
    commitElsewhere();
    watch.add(other);
    vi.advanceTimersByTime(POLL_MS);
    expect(other.rings).toBe(0); // it was there before
    commitElsewhere();
    vi.advanceTimersByTime(POLL_MS);
    expect([one.rings, other.rings]).toEqual([0, 1]);
  });

  test('wakes whoever waits where the file can not be read any more', () => {
    useFakeIntervals();
    const { watch, openings } = file();
    const wakeUp = new CountingBell();
    watch.add(wakeUp);
    openings[0]?.close();
    vi.advanceTimersByTime(POLL_MS);
    expect(wakeUp.rings).toBe(1);
  });

  test('ends when it is closed, which wakes whoever waits', async () => {
    useFakeIntervals();
    const { watch, watchOf, commitElsewhere } = file();
    const wakeUp = new CountingBell();
    watch.add(wakeUp);
    watch.close();
    expect(wakeUp.rings).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
    commitElsewhere();
    watchOf().notify();
    await nextTurn();
    await nextTurn();
    expect(wakeUp.rings).toBe(1);
  });

  test('keeps no process alive', async () => {
    const { path } = file();
    const script = `
      import { CommitWatch } from '${SOURCE}/sqlite/commit-watch.ts';
      import { Database } from '${SOURCE}/sqlite/database.ts';
      const db = new Database('${path}', { migrations: [], durability: 'normal' });
      new CommitWatch(db).add({ notify() {} });`;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      timeout: 10_000,
    });
    await expect(run).resolves.toBeDefined();
  });

  test('of a closed file is refused', () => {
    const { watch, openings } = file();
    openings[0]?.close();
    expect(() => watch.add(new CountingBell())).toThrow(expect.objectContaining({ code: 'STORE_CLOSED' }));
  });
});
