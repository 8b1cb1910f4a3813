import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { abortOnInterrupt, Output } from '../../../../src/operator/cli/command/output.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

test.each([
  ['SIGINT', 0],
  ['SIGTERM', 0],
  ['SIGHUP', 1], // a closed terminal sends it twice, and the second one must not end the process
] as const)('%s interrupts a command, and %i of its kind are still taken after it', (signal, taken) => {
  const before = SIGNALS.map((name) => process.listeners(name));
  onTestFinished(() => {
    for (const [at, name] of SIGNALS.entries())
      for (const each of process.listeners(name)) if (!before[at]?.includes(each)) process.off(name, each);
  });
  const taking = process.listenerCount(signal);
  const interrupted = abortOnInterrupt();
  process.emit(signal);
  expect(interrupted.aborted).toBe(true);
  expect(process.listenerCount(signal) - taking).toBe(taken);
});

describe('the rows of a list', () => {
  /** What is written to standard output, line by line. */
  function written(): string[] {
    const lines: string[] = [];
    const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      lines.push(...String(text).split('\n').slice(0, -1));
      return true;
    });
    onTestFinished(() => write.mockRestore());
    return lines;
  }

  test('wait for each other, since the first ones decide how wide a column is, and are all there at the end', async () => {
    const lines = written();
    const out = new Output(false);
    await out.row({ name: 'a' });
    await out.row({ name: 'longer', state: 'on' });
    expect(lines).toEqual([]);
    await out.end();
    expect(lines).toEqual(['Name    Details', 'a       –', 'longer  state on']);
    await out.end();
    await out.row({ name: 'b' });
    expect(lines.slice(3)).toEqual(['b']);
  });

  test('wait no longer than a moment, and never for more than fifty of them', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const lines = written();
    const slow = new Output(false);
    await slow.row({ name: 'a' });
    await vi.advanceTimersByTimeAsync(100);
    expect(lines).toEqual(['Name', 'a']);
    const fast = new Output(false);
    for (let n = 1; n <= 50; n++) await fast.row({ name: n });
    expect(lines).toHaveLength(2 + 51);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('are documents with --json, each at once', async () => {
    const lines = written();
    await new Output(true).row({ name: 'a', none: null });
    expect(lines).toEqual(['{"name":"a","none":null}']);
  });
});
