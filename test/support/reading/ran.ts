import { Session } from 'node:inspector';

/** From now on in this thread; each call returns the URLs of the sources of which a function ran since the last one. */
export function watchSources(): () => string[] {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return () => {
    let ran: string[] = [];
    // Called back before it returns, as each command to the thread's own inspector.
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
