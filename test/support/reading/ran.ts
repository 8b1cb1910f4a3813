import { Session } from 'node:inspector';

/**
 * Watches this thread from now on. Each call returns the functions that ran since the last call: the URL of the source and
 * the function's place in it.
 */
export function watchFunctions(): () => string[] {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return () => {
    let ran: string[] = [];
    // The callback runs before this returns, as with every command to the thread's own inspector.
    session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      if (error !== null) throw new Error(error.message);
      ran = coverage.result.flatMap(({ url, functions }) =>
        functions.flatMap(({ ranges: [whole] }) =>
          whole !== undefined && whole.startOffset > 0 && whole.count > 0
            ? `${url}#${whole.startOffset}`
            : [],
        ),
      );
    });
    return ran;
  };
}
