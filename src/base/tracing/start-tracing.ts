import type { Config } from '../config/config.ts';
import type { Log } from '../log.ts';
import { sendSpansTo } from './spans.ts';

export interface RunningTracing {
  /** Exports the rest, for at most a second. */
  stop(): Promise<void>;
}

/** Exports the spans of this thread if `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Otherwise nothing of OpenTelemetry is loaded. */
export async function startTracing(config: Config, log: Log): Promise<RunningTracing> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return { stop: async () => undefined };
  const { exportSpans } = await import('./export-spans.ts');
  const exporter = exportSpans(config.OTEL_EXPORTER_OTLP_ENDPOINT, config, log);
  sendSpansTo(exporter.add);
  return {
    async stop() {
      sendSpansTo(undefined);
      await exporter.stop();
    },
  };
}
