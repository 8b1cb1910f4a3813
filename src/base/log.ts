import { type Logger, pino } from 'pino';
import { printable } from './printable.ts';
import { sharedNumber } from './thread.ts';

export type Log = Logger;

/** The number of bytes that may wait for standard output. Further lines are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** The bytes that a pipe writes atomically (PIPE_BUF), so that the lines of several threads are not mixed. */
const MAX_WRITE_BYTES = 4096;
const STANDARD_OUTPUT = 1;
/** The wait before a full disk is tried again. */
const RETRY_MS = 1_000;
const DROPPED = 'fuel: dropped log lines';

/**
 * Writes one JSON line per entry to standard output. Entries contain identifiers, never secrets or personal data.
 * `error` means: alert someone. Lines are written asynchronously, so that a slow disk or pipe does not delay requests.
 * While they can't be written, lines beyond the limit are dropped; once they can be written again, a line says how many
 * were. A process ends once its lines are written; one that crashes may lose the last.
 */
export function createLog(level: string, fields: Readonly<Record<string, unknown>> = {}): Log {
  const write = standardOutput((dropped) =>
    log.warn({ dropped }, 'log lines were dropped: standard output did not accept them'),
  );
  const log = pino(
    { level, base: { pid: process.pid, ...fields }, timestamp: pino.stdTimeFunctions.isoTime },
    { write },
  );
  return log;
}

/** Returns the function that writes a line. */
function standardOutput(onDropped: (lines: number) => void): (line: string) => void {
  const limits = { maxLength: MAX_WAITING_BYTES, maxWrite: MAX_WRITE_BYTES };
  const output = pino.destination({ dest: STANDARD_OUTPUT, sync: false, ...limits });
  output.flushSync = () => undefined; // pino's (sonic-boom 4.2.1) repeats a write for ever if the disk is full
  let dropped = 0;
  let isClosed = false;
  let retry: NodeJS.Timeout | undefined;
  output.on('drop', () => {
    dropped += 1;
    Atomics.add(droppedByAll, 0, 1);
  });
  output.on('drain', () => {
    clearInterval(retry);
    retry = undefined;
    const lines = dropped;
    dropped = 0;
    if (lines > 0) onDropped(lines);
  });
  output.on('error', (error: NodeJS.ErrnoException) => {
    isClosed ||= error.code === 'EPIPE'; // the reader is gone for good
    if (isClosed || retry !== undefined) return;
    process.stderr.write(`fuel: cannot write the log, retrying: ${error.message}\n`);
    retry = setInterval(() => output.write(''), RETRY_MS).unref(); // it writes what waits
  });
  return (line) => {
    if (!isClosed) output.write(printable(line));
  };
}

/** A log that writes nothing, for callers without one. */
export const silentLog: Log = pino({ level: 'silent' });

/** How many lines all threads of this process have dropped. */
export function droppedLogLines(): number {
  return Atomics.load(droppedByAll, 0);
}

const droppedByAll = sharedNumber(DROPPED);
