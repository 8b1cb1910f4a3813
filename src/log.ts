import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { type Logger, pino } from 'pino';
import { printable } from './printable.ts';

export type Log = Logger;

/** How much waits for the reader of standard output; further lines are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** What a pipe takes in one piece (PIPE_BUF): the lines of several threads must not be mixed. */
const MAX_WRITE_BYTES = 4096;
const DROPPED = 'fuel: dropped log lines';

/**
 * One JSON line per entry on standard output. Entries have identifiers, never secrets or personal data. `error` means:
 * alert someone. Lines are written asynchronously, so that a slow disk or pipe does not delay requests. While the reader
 * stalls, lines beyond the limit are dropped, and a line says how many once it reads again. Lines that still wait when the
 * process ends are written then.
 */
export function createLog(level: string, fields: Readonly<Record<string, unknown>> = {}): Log {
  const destination = pino.destination({
    ...{ fd: 1, sync: false, minLength: 0 },
    maxLength: MAX_WAITING_BYTES,
    maxWrite: MAX_WRITE_BYTES,
  });
  process.once('exit', () => destination.flushSync());
  const log = pino(
    { level, base: { pid: process.pid, ...fields }, timestamp: pino.stdTimeFunctions.isoTime },
    {
      write: (line) => void destination.write(printable(line)),
      flushSync: () => destination.flushSync(),
    } as pino.DestinationStream,
  );
  let dropped = 0;
  destination.on('drop', () => {
    dropped += 1;
    Atomics.add(droppedByAll, 0, 1);
  });
  destination.on('drain', () => {
    if (dropped === 0) return;
    const lines = dropped;
    dropped = 0;
    log.warn({ dropped: lines }, 'log lines were dropped: nothing read standard output');
  });
  return log;
}

/** For callers without a log. */
export const silentLog: Log = pino({ level: 'silent' });

/** How many lines all threads of this process have dropped. */
export function droppedLogLines(): number {
  return Atomics.load(droppedByAll, 0);
}

/** One counter for the process: threads inherit it as environment data. */
const droppedByAll = sharedCount();

function sharedCount(): Uint32Array {
  const known = getEnvironmentData(DROPPED);
  if (known instanceof Uint32Array) return known;
  const made = new Uint32Array(new SharedArrayBuffer(Uint32Array.BYTES_PER_ELEMENT));
  setEnvironmentData(DROPPED, made);
  return made;
}
