import { hash } from 'node:crypto';
import { steadyClock, systemClock } from '../clock.ts';
import { world } from '../world.ts';

export interface SpanPlace {
  /** 32 hexadecimal digits: the digits of a UUID. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
}

/** A span that has ended. Its attributes must not have a name, plate, number, key or secret. */
export interface EndedSpan extends SpanPlace {
  readonly parentId?: string;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  /** Times in milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links?: readonly SpanPlace[];
  /** True if what it stands for has failed. */
  readonly isError?: boolean;
}

type Sink = (spans: readonly EndedSpan[]) => void;

/** Holds the sink of this thread’s spans. Without one no span is made. */
class Spans {
  sink: Sink | undefined;
}

/** Sets where the spans of this thread go, or that they go nowhere. */
export function sendSpansTo(sink: Sink | undefined): void {
  world.single(Spans).sink = sink;
}

/** Hands over spans that have ended. Without an endpoint they are not even made. */
export function trace(make: () => readonly EndedSpan[]): void {
  world.single(Spans).sink?.(make());
}

export function isTracing(): boolean {
  return world.single(Spans).sink !== undefined;
}

/** The trace that has the digits of a UUID. */
export function traceIdOf(uuid: string): string {
  return uuid.replaceAll('-', '');
}

/** The field of a log line about something that has a trace, while spans are exported. */
export function traceField(uuid: string): { readonly trace_id?: string } {
  return isTracing() ? { trace_id: traceIdOf(uuid) } : {};
}

/** The id of a span, always the same for the same parts. */
export function spanIdOf(...parts: readonly (string | number)[]): string {
  return hash('sha256', parts.join('/'), 'hex').slice(0, 16);
}

/** The root span of a command, by the correlation id of its events. */
export function commandPlace(correlationId: string): SpanPlace {
  return { traceId: traceIdOf(correlationId), spanId: spanIdOf(correlationId) };
}

/** The attributes of a batch: its size, and the position that it ends at. */
export function batchAttributes(size: number, position = 0): EndedSpan['attributes'] {
  return { 'fuel.batch.size': size, 'fuel.batch.position': position };
}

/** Measures work on many things, and hands over its span once `end` is called. */
export function traceBatch(name: string, of: { readonly own?: SpanPlace; readonly parent?: SpanPlace } = {}) {
  const [startedAtMs, startMs] = [systemClock.now(), steadyClock.now()];
  return {
    end(attributes: EndedSpan['attributes']): void {
      trace(() => {
        const id = world.randomUUID();
        const { own = { traceId: of.parent?.traceId ?? traceIdOf(id), spanId: spanIdOf(id) }, parent } = of;
        const endedAtMs = startedAtMs + steadyClock.now() - startMs;
        const within = parent === undefined ? {} : { parentId: parent.spanId };
        return [{ ...own, ...within, name, kind: 'internal', startedAtMs, endedAtMs, attributes }];
      });
    },
  };
}
