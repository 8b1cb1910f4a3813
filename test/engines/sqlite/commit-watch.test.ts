import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { pause } from '../../../src/base/pause.ts';
import { CommitWatch } from '../../../src/engines/sqlite/driver/commit-watch.ts';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { TOO_LATE_MS, until, within } from '../../support/waiting.ts';

const SOURCE = join(import.meta.dirname, '../../../src');
const THREAD = join(import.meta.dirname, '../../support/event-store/watch-in-thread.ts');
const POLL_MS = 20;
/** The options for a system that does not report writes to a file. */
const POLLS = { watchesFile: false };

class CountingListener {
  count = 0;
  notify(): void {
    this.count++;
  }
}

function useFakeTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

/** Makes a file and a connection that commits to it like another process. */
function file() {
  const path = join(temporaryFolder(), 'watched.db');
  const openings: Database[] = [];
  const watchOf = (options: ConstructorParameters<typeof CommitWatch>[1] = POLLS): CommitWatch => {
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
  test('notifies every listener at the next poll, once', () => {
    useFakeTimers();
    const { watch, commitElsewhere } = file();
    const listeners = [new CountingListener(), new CountingListener()];
    for (const listener of listeners) watch.add(listener);
    vi.advanceTimersByTime(5 * POLL_MS);
    expect(listeners.map(({ count }) => count)).toEqual([0, 0]); // earlier commits are not reported
    commitElsewhere();
    vi.advanceTimersByTime(POLL_MS - 1);
    expect(listeners.map(({ count }) => count)).toEqual([0, 0]);
    vi.advanceTimersByTime(1);
    expect(listeners.map(({ count }) => count)).toEqual([1, 1]);
    vi.advanceTimersByTime(5 * POLL_MS);
    expect(listeners.map(({ count }) => count)).toEqual([1, 1]);
  });

  test('is reported to the other threads, which poll less often', async () => {
    const { watch, watchOf, commitElsewhere } = file();
    const far = new CountingListener();
    watchOf({ ...POLLS, pollMs: TOO_LATE_MS }).add(far);
    watch.add(new CountingListener());
    commitElsewhere();
    await until(() => far.count > 0);
  });

  test('is noticed by a thread also where the main thread does not report it', async () => {
    const { path, commitElsewhere } = file();
    const thread = new Worker(THREAD, { workerData: { path } });
    onTestFinished(async () => {
      await thread.terminate();
    });
    expect(await once(thread, 'message')).toEqual(['ready']);
    const notified = once(thread, 'message');
    commitElsewhere();
    expect(await within(notified, 3_000, 'the thread was not notified')).toEqual(['notified']);
  });
});

describe('a commit of this process', () => {
  test('notifies every listener at once, also in other threads', async () => {
    const { watch, watchOf } = file();
    const [near, far] = [new CountingListener(), new CountingListener()];
    watch.add(near);
    watchOf({ ...POLLS, pollMs: TOO_LATE_MS }).add(far);
    watch.notify();
    expect(near.count).toBe(1);
    await until(() => far.count === 1);
  });

  test('notifies a listener of another connection once: what it has heard of, the poll does not report', async () => {
    useFakeTimers();
    const { watch, watchOf, commitElsewhere } = file();
    const [near, far] = [new CountingListener(), new CountingListener()];
    watch.add(near);
    watchOf().add(far);
    commitElsewhere();
    watchOf().notify(); // whose commit it was
    while (near.count + far.count < 2) await nextTurn();
    vi.advanceTimersByTime(5 * POLL_MS);
    await nextTurn();
    expect([near.count, far.count]).toEqual([1, 1]);
  });

  test('does not notify listeners of another file', async () => {
    const [one, other] = [file(), file()];
    const [listener, same] = [new CountingListener(), new CountingListener()];
    other.watch.add(listener);
    one.watchOf({ ...POLLS, pollMs: TOO_LATE_MS }).add(same);
    one.watch.notify();
    await until(() => same.count === 1);
    expect(listener.count).toBe(0);
  });
});

describe('the poll for commits', () => {
  test('is one for all listeners, stops with the last and starts again with the next', () => {
    useFakeTimers();
    const { watch, commitElsewhere } = file();
    const [one, other] = [new CountingListener(), new CountingListener()];
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
    expect(other.count).toBe(0); // it was committed before
    commitElsewhere();
    vi.advanceTimersByTime(POLL_MS);
    expect([one.count, other.count]).toEqual([0, 1]);
  });

  test('notifies the listeners where the file cannot be read any more', () => {
    useFakeTimers();
    const { watch, openings } = file();
    const listener = new CountingListener();
    watch.add(listener);
    openings[0]?.close();
    vi.advanceTimersByTime(POLL_MS);
    expect(listener.count).toBe(1);
  });

  test('stops when the watch is closed, which notifies the listeners', async () => {
    useFakeTimers();
    const { watch, watchOf, commitElsewhere } = file();
    const listener = new CountingListener();
    watch.add(listener);
    watch.close();
    expect(listener.count).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
    commitElsewhere();
    watchOf().notify();
    await nextTurn();
    await nextTurn();
    expect(listener.count).toBe(1);
  });

  test('keeps no process alive', async () => {
    const { path } = file();
    const script = `
      import { CommitWatch } from '${SOURCE}/engines/sqlite/driver/commit-watch.ts';
      import { Database } from '${SOURCE}/engines/sqlite/driver/database.ts';
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
    expect(() => watch.add(new CountingListener())).toThrow(
      expect.objectContaining({ code: 'STORE_CLOSED' }),
    );
  });
});

describe.runIf(process.platform === 'linux')('a watched file', () => {
  test('reports a commit of another process long before the next poll', async () => {
    const { watchOf, commitElsewhere } = file();
    const watch = watchOf({ pollMs: TOO_LATE_MS, watchesFile: true });
    const listener = new CountingListener();
    watch.add(listener);
    for (let commits = 1; commits <= 3; commits++) {
      commitElsewhere();
      await until(() => listener.count === commits);
    }
  });

  test('is not polled for while nothing is written, nor watched without a listener', async () => {
    const { watchOf, openings, commitElsewhere } = file();
    const watch = watchOf({ watchesFile: true });
    const polls = vi.spyOn(openings.at(-1) as Database, 'dataVersion');
    const listener = new CountingListener();
    watch.add(listener);
    await pause(300, new AbortController().signal);
    expect(polls.mock.calls.length).toBeLessThanOrEqual(2);
    watch.remove(listener);
    commitElsewhere();
    await pause(50, new AbortController().signal);
    expect(listener.count).toBe(0);
  });

  test('is polled for where the log cannot be watched', async () => {
    class WithoutLog extends Database {
      override readonly path = join(temporaryFolder(), 'nowhere');
    }
    const { path, commitElsewhere } = file();
    const db = new WithoutLog(path, { migrations: [], durability: 'normal' });
    const watch = new CommitWatch(db, { watchesFile: true });
    onTestFinished(() => {
      watch.close();
      db.close();
    });
    const listener = new CountingListener();
    watch.add(listener);
    commitElsewhere();
    await until(() => listener.count > 0);
  });
});
