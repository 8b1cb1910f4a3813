import { type Logger, pino } from 'pino';

export type Log = Logger;

/**
 * One JSON line an entry on standard output. Entries carry identifiers, never secrets or personal data.
 * `error` means: wake someone. Lines are handed to the system at once, but not waited for: a slow disk or pipe
 * must not hold up requests. Whatever is still on its way when the process ends is written then.
 */
export function createLog(level: string, fields: Readonly<Record<string, unknown>> = {}): Log {
  const destination = pino.destination({ fd: 1, sync: false, minLength: 0 });
  process.once('exit', () => destination.flushSync());
  return pino(
    { level, base: { pid: process.pid, ...fields }, timestamp: pino.stdTimeFunctions.isoTime },
    destination,
  );
}

/** For whoever has nobody to tell. */
export const silentLog: Log = pino({ level: 'silent' });
