import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { Config } from '../config/config.ts';
import type { Log } from '../log.ts';
import { orLate } from '../pause.ts';
import type { EndedSpan } from './spans.ts';

const SCOPE = 'fuel-integration';
/** Further spans are dropped, so that an unreachable collector costs a few megabytes. */
const QUEUE = { maxQueueSize: 8_192, maxExportBatchSize: 512 } as const;
/** A process that is killed loses the spans of this time. */
const EXPORT_EVERY_MS = 500;
const MAX_STOP_MS = 1_000;
const KINDS = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;

type SamplerConfig = Pick<Config, 'OTEL_TRACES_SAMPLER' | 'OTEL_TRACES_SAMPLER_ARG'>;

/** Exports spans to a collector by OTLP over HTTP. */
export function exportSpans(endpoint: string, config: SamplerConfig, log: Log) {
  const own = resourceFromAttributes({ 'service.name': SCOPE });
  const given = detectResources({ detectors: [envDetector] });
  const resource = defaultResource().merge(own).merge(given);
  const exporter = new ReportedExporter(new URL('v1/traces', `${endpoint.replace(/\/+$/, '')}/`).href, log);
  const processor = new BatchSpanProcessor({ exporter, scheduledDelayMillis: EXPORT_EVERY_MS, ...QUEUE });
  const sampler = samplerOf(config);
  const isSampled = ({ traceId, name, kind, attributes }: EndedSpan): boolean =>
    sampler.shouldSample(ROOT_CONTEXT, traceId, name, KINDS[kind], attributes, []).decision ===
    SamplingDecision.RECORD_AND_SAMPLED;
  return {
    add(spans: readonly EndedSpan[]): void {
      for (const each of spans) if (isSampled(each)) processor.onEnd(readable(each, resource));
    },
    /** Exports the rest, for at most a second. */
    async stop(): Promise<void> {
      await orLate(
        processor.shutdown().catch(() => undefined), // the exporter has reported why
        MAX_STOP_MS,
        () => undefined,
      );
    },
  };
}

/** A span as the exporter reads it. A tracer would make the same in almost twice the time, since it expects spans under way. */
function readable(span: EndedSpan, resource: Resource): ReadableSpan {
  const { traceId, spanId, parentId, startedAtMs, endedAtMs, links = [] } = span;
  const context = (id: string, trace = traceId) => ({
    traceId: trace,
    spanId: id,
    traceFlags: TraceFlags.SAMPLED,
  });
  const own = context(spanId);
  return {
    name: span.name,
    kind: KINDS[span.kind],
    attributes: span.attributes,
    resource,
    spanContext: () => own,
    ...(parentId === undefined ? {} : { parentSpanContext: context(parentId) }),
    startTime: highResolution(startedAtMs),
    endTime: highResolution(Math.max(startedAtMs, endedAtMs)),
    duration: highResolution(Math.max(0, endedAtMs - startedAtMs)),
    status: { code: span.isError === true ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    links: links.map((link) => ({ context: context(link.spanId, link.traceId) })),
    events: [],
    ended: true,
    instrumentationScope: { name: SCOPE },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Logs once when spans can't be exported, and when they can be again. */
class ReportedExporter extends OTLPTraceExporter {
  readonly #log: Log;
  readonly #url: string;
  #isFailing = false;

  constructor(url: string, log: Log) {
    super({ url });
    this.#url = url;
    this.#log = log;
  }

  override export(spans: ReadableSpan[], done: Parameters<OTLPTraceExporter['export']>[1]): void {
    super.export(spans, (result) => {
      const { error } = result;
      if (error !== undefined && !this.#isFailing)
        this.#log.warn(
          { collector: this.#url, reason: error.message },
          'spans are lost: the collector fails',
        );
      if (error === undefined && this.#isFailing)
        this.#log.info({ collector: this.#url }, 'spans are exported again');
      this.#isFailing = error !== undefined;
      done(result);
    });
  }
}

/**
 * Decides by the trace alone, so that all spans of a trace have one fate although they are exported at different times. Since
 * no parent is ever remote, a sampler by the parent decides like its root.
 */
function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: SamplerConfig): Sampler {
  if (name.endsWith('traceidratio')) return new TraceIdRatioBasedSampler(ratio);
  return name.endsWith('always_off') ? new AlwaysOffSampler() : new AlwaysOnSampler();
}

function highResolution(ms: number): [seconds: number, nanoseconds: number] {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.floor((ms - seconds * 1_000) * 1e6)];
}
