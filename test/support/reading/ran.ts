import { Session } from 'node:inspector';

/**
 * Watches this thread from now on. Each call returns the URLs of sources of which a function ran since the last call.
 */
export function watchSources(): () => string[] {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return () => {
    let ran: string[] = [];
    // The callback runs before this returns, as with every command to the thread's own inspector.
    session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      if (error !== null) throw new Error(error.message);
      const hasRun = coverage.result.filter(({ functions }) =>
        functions.some(
          ({ ranges: [whole] }) => whole !== undefined && whole.startOffset > 0 && whole.count > 0,
        ),
      );
      ran = hasRun.map(({ url }) => url);
    });
    return ran;
  };
}
