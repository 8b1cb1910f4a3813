import { afterEach, describe, expect, test, vi } from 'vitest';
import { progressLine } from '../../../../src/operator/cli/command/long-work.ts';

/** What a progress line writes to a standard error that is a terminal, or is none. */
function written({ isTTY }: { readonly isTTY: boolean }): {
  line: ReturnType<typeof progressLine>;
  text: () => string;
} {
  let text = '';
  vi.useFakeTimers({ now: 1_000_000 });
  vi.spyOn(process.stderr, 'write').mockImplementation((part) => {
    text += String(part);
    return true;
  });
  const before = Object.getOwnPropertyDescriptor(process.stderr, 'isTTY');
  Object.defineProperty(process.stderr, 'isTTY', { value: isTTY, configurable: true });
  restore = () => {
    if (before === undefined) Reflect.deleteProperty(process.stderr, 'isTTY');
    else Object.defineProperty(process.stderr, 'isTTY', before);
  };
  return { line: progressLine(), text: () => text };
}

let restore = (): void => undefined;
afterEach(() => {
  restore();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe('a progress line', () => {
  test('is written over on a terminal, at most ten times a second, and removed in the end', () => {
    const { line, text } = written({ isTTY: true });
    line.show('one');
    vi.advanceTimersByTime(99);
    line.show('two');
    vi.advanceTimersByTime(1);
    line.show('three');
    expect(text()).toBe('\r\u001b[Kone\r\u001b[Kthree');
    line.end();
    expect(text()).toBe('\r\u001b[Kone\r\u001b[Kthree\r\u001b[K');
  });

  test('that was never shown has nothing to remove', () => {
    const { line, text } = written({ isTTY: true });
    line.end();
    expect(text()).toBe('');
  });

  test('is not written where standard error is no terminal', () => {
    const { line, text } = written({ isTTY: false });
    line.show('one');
    line.end();
    expect(text()).toBe('');
  });
});
