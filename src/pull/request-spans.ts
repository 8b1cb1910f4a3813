import { steadyClock, systemClock } from '../base/clock.ts';
import { type EndedSpan, isTracing, type SpanPlace, trace, traceIdOf } from '../base/tracing/spans.ts';
import type { Context, RefusalCode } from './answers.ts';

/** The refusals that are not the customer's fault. */
const FAULTS: readonly RefusalCode[] = ['INTERNAL_ERROR', 'SERVICE_UNAVAILABLE'];
/** The only path that is served. */
const ROUTE = '/transactions';
/** The customer's span, as the specification of `traceparent` writes it. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/;

/** Does a step of a request, whose time is a span of its own while spans are exported. */
export async function tracedStep<T>(
  { state }: Context,
  name: string,
  work: () => T | Promise<T>,
): Promise<T> {
  if (!isTracing()) return work();
  const startMs = steadyClock.now();
  try {
    return await work();
  } finally {
    state.steps = [...(state.steps ?? []), { name, startMs, endMs: steadyClock.now() }];
  }
}

/** Exports the spans of an answered request. */
export function traceRequest(ctx: Context, startMs: number): void {
  trace(() => requestSpans(ctx, { startMs, endMs: steadyClock.now(), nowMs: systemClock.now() }));
}

/**
 * The span of a request and those of its steps. The trace has the digits of the request's id. A span of the customer's is
 * linked, and never the parent.
 */
function requestSpans(
  ctx: Context,
  { startMs, endMs, nowMs }: { readonly startMs: number; readonly endMs: number; readonly nowMs: number },
): EndedSpan[] {
  const { requestId, caller, rows, code, steps = [] } = ctx.state;
  const traceId = traceIdOf(requestId);
  // The id of a request is random, so parts of it are as good as hashes of it, which cost more.
  const spanId = (n: number): string => `${traceId.slice(-15)}${n}`;
  const root = { traceId, spanId: spanId(0) };
  const atMs = (steadyMs: number): number => nowMs - (endMs - steadyMs);
  const route = ctx.state.path.endsWith(ROUTE) ? ROUTE : undefined;
  const method = ctx.method === 'GET' ? ctx.method : '_OTHER';
  const server: EndedSpan = {
    ...root,
    name: route === undefined ? method : `${method} ${route}`,
    kind: 'server',
    startedAtMs: atMs(startMs),
    endedAtMs: nowMs,
    attributes: {
      'http.request.method': method,
      'http.response.status_code': ctx.status,
      ...(route === undefined ? {} : { 'http.route': route }),
      ...(caller?.prefix === undefined ? {} : { 'fuel.key.prefix': caller.prefix }),
      ...(rows === undefined ? {} : { 'fuel.page.rows': rows }),
      ...(code === undefined ? {} : { 'error.type': code }),
    },
    links: customerSpan(ctx.get('traceparent')),
    isError: code !== undefined && FAULTS.includes(code),
  };
  const children = steps.map(
    ({ name, ...step }, index): EndedSpan => ({
      traceId,
      spanId: spanId(index + 1),
      parentId: root.spanId,
      name,
      kind: 'internal',
      attributes: {},
      startedAtMs: atMs(step.startMs),
      endedAtMs: atMs(step.endMs),
    }),
  );
  return [server, ...children];
}

function customerSpan(traceparent: string): SpanPlace[] {
  const [, traceId, spanId] = TRACEPARENT.exec(traceparent) ?? [];
  return traceId === undefined || spanId === undefined ? [] : [{ traceId, spanId }];
}
