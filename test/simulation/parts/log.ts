import type { Log } from '../../../src/base/log.ts';
import type { History } from '../core/history.ts';

/** Makes a log whose lines become history. A fault of the program is a violation. */
export function simulatedLog(
  name: string,
  run: { readonly history: History; violation(text: string): void },
): Log {
  const line =
    (level: string) =>
    (fields: unknown, text?: string): void => {
      const { err, reason } = (typeof fields === 'object' ? fields : {}) as {
        err?: unknown;
        reason?: unknown;
      };
      const said = text ?? String(fields);
      const cause = err === undefined ? (reason ?? '') : err instanceof Error ? err.message : err;
      if (level === 'error' || level === 'warn') run.history.add(name, `${level}: ${said} ${cause}`);
      if (err instanceof Error && !('code' in err) && (err instanceof TypeError || err instanceof RangeError))
        run.violation(`${name} logs a fault of the program: ${said}: ${stackOf(err)}`);
    };
  const quiet = (): void => undefined;
  const log = {
    trace: quiet,
    debug: quiet,
    info: quiet,
    warn: line('warn'),
    error: line('error'),
    fatal: line('error'),
  };
  return { ...log, child: () => log } as unknown as Log;
}

export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
