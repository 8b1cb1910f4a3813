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
  /** Collects standard output, line by line. */
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

describe('the progress line', () => {
  function onTerminal(isTTY: boolean) {
    let text = '';
    vi.useFakeTimers({ now: 1_000_000 });
    const write = vi.spyOn(process.stderr, 'write').mockImplementation((part) => {
      text += String(part);
      return true;
    });
    const before = Object.getOwnPropertyDescriptor(process.stderr, 'isTTY');
    Object.defineProperty(process.stderr, 'isTTY', { value: isTTY, configurable: true });
    onTestFinished(() => {
      write.mockRestore();
      vi.useRealTimers();
      if (before === undefined) Reflect.deleteProperty(process.stderr, 'isTTY');
      else Object.defineProperty(process.stderr, 'isTTY', before);
    });
    return { out: new Output(false), text: () => text };
  }

  test('is overwritten on a terminal, at most ten times a second, and removed before anything else is printed', async () => {
    const { out, text } = onTerminal(true);
    out.progress('one');
    vi.advanceTimersByTime(99);
    out.progress('two');
    vi.advanceTimersByTime(1);
    out.progress('three');
    expect(text()).toBe('\r\u001b[Kone\r\u001b[Kthree');
    out.note('done');
    expect(text().endsWith('three\r\u001b[Kdone\n')).toBe(true);
    await out.end();
    expect(text()).toMatch(/done\n$/);
  });

  test('is not written if standard error is not a terminal', async () => {
    const { out, text } = onTerminal(false);
    out.progress('one');
    await out.end();
    expect(text()).toBe('');
  });
});
