import { write, writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';
import { printable } from './printable.ts';
import { sharedNumber } from './thread.ts';

export type Log = Logger;

/** How much waits for standard output; further lines are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** What a pipe takes in one piece (PIPE_BUF): the lines of several threads must not be mixed. */
const MAX_WRITE_BYTES = 4096;
const STANDARD_OUTPUT = 1;
/** Before a pipe that is full is tried again. */
const BUSY_MS = 100;
/** Before a full disk is. */
const RETRY_MS = 1_000;
/** A reader that has stalled must not keep the process from ending. */
const MAX_FLUSH_MS = 1_000;
const DROPPED = 'fuel: dropped log lines';

/**
 * One JSON line per entry on standard output. Entries have identifiers, never secrets or personal data. `error` means:
 * alert someone. Lines are written asynchronously, so that a slow disk or pipe does not delay requests. While they can't
 * be written, lines beyond the limit are dropped, and a line says how many once they can be again. Lines that still wait
 * when the process ends are written then, if that is possible.
 */
export function createLog(level: string, fields: Readonly<Record<string, unknown>> = {}): Log {
  const output = new LogOutput((dropped) =>
    log.warn({ dropped }, 'log lines were dropped: standard output took none'),
  );
  process.once('exit', () => output.flushSync());
  const log = pino(
    { level, base: { pid: process.pid, ...fields }, timestamp: pino.stdTimeFunctions.isoTime },
    output,
  );
  return log;
}

/**
 * Standard output for a log. Not pino's destination: that ends the process at a full disk, or waits for ever in
 * `flushSync`, as it does for a reader that has stalled.
 */
class LogOutput implements pino.DestinationStream {
  readonly #onDropped: (lines: number) => void;
  /** Lines that are not in `#writing` yet. */
  #waiting: string[] = [];
  #waitingBytes = 0;
  #writing = Buffer.alloc(0);
  #isInFlight = false;
  #retry: NodeJS.Timeout | undefined;
  #dropped = 0;
  #isFailing = false;
  #isClosed = false;

  constructor(onDropped: (lines: number) => void) {
    this.#onDropped = onDropped;
  }

  write(text: string): void {
    if (this.#isClosed) return;
    const line = printable(text);
    const bytes = Buffer.byteLength(line);
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.#dropped += 1;
      Atomics.add(droppedByAll, 0, 1);
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += bytes;
    if (!this.#isInFlight && this.#retry === undefined) this.#writeNext();
  }

  /** Writes what waits, if that is possible within a second. What is in flight comes in its own time. */
  flushSync(): void {
    const deadlineMs = performance.now() + MAX_FLUSH_MS;
    let bytes = this.#takeWaiting();
    if (!this.#isInFlight) {
      bytes = Buffer.concat([this.#writing, bytes]);
      this.#writing = Buffer.alloc(0);
    }
    while (bytes.length > 0 && !this.#isClosed) {
      try {
        bytes = bytes.subarray(writeSync(STANDARD_OUTPUT, bytes));
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadlineMs) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
      }
    }
  }

  #takeWaiting(): Buffer<ArrayBuffer> {
    const bytes = Buffer.from(this.#waiting.join(''));
    this.#waiting = [];
    this.#waitingBytes = 0;
    return bytes;
  }

  /** Whole lines, as many as are written in one piece. */
  #takeNext(): Buffer<ArrayBuffer> {
    let bytes = 0;
    const beyond = this.#waiting.findIndex((line, index) => {
      bytes += Buffer.byteLength(line);
      return index > 0 && bytes > MAX_WRITE_BYTES;
    });
    const next = Buffer.from(this.#waiting.splice(0, beyond === -1 ? this.#waiting.length : beyond).join(''));
    this.#waitingBytes -= next.length;
    return next;
  }

  #writeNext(): void {
    this.#retry = undefined;
    if (this.#writing.length === 0) this.#writing = this.#takeNext();
    if (this.#writing.length === 0) {
      this.#drained();
      return;
    }
    this.#isInFlight = true;
    write(STANDARD_OUTPUT, this.#writing, (error, written) => {
      this.#isInFlight = false;
      if (error) {
        this.#failed(error);
        return;
      }
      this.#isFailing = false;
      this.#writing = this.#writing.subarray(written);
      this.#writeNext();
    });
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (error.code === 'EPIPE') {
      this.#isClosed = true; // nobody will read it
      this.#takeWaiting();
    } else if (isBusy(error)) {
      this.#retry = setTimeout(() => this.#writeNext(), BUSY_MS);
    } else {
      if (!this.#isFailing) {
        process.stderr.write(`fuel: the log can not be written, which is tried again: ${error.message}\n`);
      }
      this.#isFailing = true;
      this.#retry = setTimeout(() => this.#writeNext(), RETRY_MS).unref();
    }
  }

  #drained(): void {
    if (this.#dropped === 0) return;
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#onDropped(lines);
  }
}

function isBusy(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EAGAIN' || code === 'EBUSY';
}

/** For callers without a log. */
export const silentLog: Log = pino({ level: 'silent' });

/** How many lines all threads of this process have dropped. */
export function droppedLogLines(): number {
  return Atomics.load(droppedByAll, 0);
}

const droppedByAll = sharedNumber(DROPPED);
