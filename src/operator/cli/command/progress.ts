const SHOWN_EVERY_MS = 100;

export interface ProgressLine {
  show(text: string): void;
  end(): void;
}

/** One line on standard error that is overwritten as work proceeds; prints nothing if that is not a terminal. */
export function progressLine(): ProgressLine {
  let shownAtMs = 0;
  let shown = false;
  return {
    show(text) {
      const now = Date.now();
      if (!process.stderr.isTTY || now - shownAtMs < SHOWN_EVERY_MS) return;
      shownAtMs = now;
      shown = true;
      process.stderr.write(`\r\u001b[K${text}`);
    },
    end() {
      if (shown) process.stderr.write('\r\u001b[K');
    },
  };
}
