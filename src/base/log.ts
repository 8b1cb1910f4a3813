import { write, writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';
import { printable } from './printable.ts';
import { sharedNumber } from './thread.ts';

export type Log = Logger;

/** The number of bytes that may wait for standard output. Further lines are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** The bytes that a pipe writes atomically (PIPE_BUF), so that the lines of several threads are not mixed. */
const MAX_WRITE_BYTES = 4096;
const STANDARD_OUTPUT = 1;
/** The wait before a full pipe is tried again. */
const BUSY_MS = 100;
/** The wait before a full disk is tried again. */
const RETRY_MS = 1_000;
/** The time to write the last lines at the end. A stalled reader must not keep the process from ending. */
const MAX_FLUSH_MS = 1_000;
const DROPPED = 'fuel: dropped log lines';

/**
 * Writes one JSON line per entry to standard output. Entries contain identifiers, never secrets or personal data.
 * `error` means: alert someone. Lines are written asynchronously, so that a slow disk or pipe does not delay requests.
 * While they can't be written, lines beyond the limit are dropped; once they can be written again, a line says how many
 * were. Lines that still wait when the process ends are written then, if possible.
 */
export function createLog(level: string, fields: Readonly<Record<string, unknown>> = {}): Log {
  const output = new LogOutput((dropped) =>
    log.warn({ dropped }, 'log lines were dropped: standard output did not accept them'),
  );
  process.once('exit', () => output.flushSync());
  const log = pino(
    { level, base: { pid: process.pid, ...fields }, timestamp: pino.stdTimeFunctions.isoTime },
    output,
  );
  return log;
}

/**
 * Standard output for a log. It replaces pino's own destination, which ends the process if the disk is full, and waits
 * forever in `flushSync` if the disk is full or the reader has stalled.
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

  /** Writes the waiting lines, if that is possible within a second. A write in flight finishes by itself. */
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

  /** Takes as many whole lines as one write may hold. */
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
      this.#isClosed = true; // the reader is gone for good
      this.#takeWaiting();
    } else if (isBusy(error)) {
      this.#retry = setTimeout(() => this.#writeNext(), BUSY_MS);
    } else {
      if (!this.#isFailing) {
        process.stderr.write(`fuel: cannot write the log, retrying: ${error.message}\n`);
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

/** A log that writes nothing, for callers without one. */
export const silentLog: Log = pino({ level: 'silent' });

/** How many lines all threads of this process have dropped. */
export function droppedLogLines(): number {
  return Atomics.load(droppedByAll, 0);
}

const droppedByAll = sharedNumber(DROPPED);
