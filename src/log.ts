import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { type Logger, pino } from 'pino';
import { printable } from './printable.ts';

export type Log = Logger;

/** What waits for a reader at most; lines beyond that are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;
const DROPPED = 'fuel: dropped log lines';

/**
 * One JSON line an entry on standard output. Entries carry identifiers, never secrets or personal data.
 * `error` means: wake someone. Lines are handed to the system at once, but not waited for: a slow disk or pipe
 * must not hold up requests, nor fill the memory: what a reader that stalls leaves no room for is dropped, and a line
 * says how many once it reads again. Whatever is still on its way when the process ends is written then.
 */
export function createLog(level: string, fields: Readonly<Record<string, unknown>> = {}): Log {
  const destination = pino.destination({ fd: 1, sync: false, minLength: 0, maxLength: MAX_WAITING_BYTES });
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
    log.warn({ dropped: lines }, 'log lines were dropped: nobody read standard output');
  });
  return log;
}

/** For whoever has nobody to tell. */
export const silentLog: Log = pino({ level: 'silent' });

/** How many lines all threads of this process have dropped. */
export function droppedLogLines(): number {
  return Atomics.load(droppedByAll, 0);
}

/** One count for the process: a thread gets it from the one that starts it. */
const droppedByAll = sharedCount();

function sharedCount(): Uint32Array {
  const known = getEnvironmentData(DROPPED);
  if (known instanceof Uint32Array) return known;
  const made = new Uint32Array(new SharedArrayBuffer(Uint32Array.BYTES_PER_ELEMENT));
  setEnvironmentData(DROPPED, made);
  return made;
}
