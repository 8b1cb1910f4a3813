import { steadyClock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { traceField } from '../base/tracing/spans.ts';
import { world } from '../base/world.ts';
import { type Context, type RefusalCode, refusalOf, refuse, type Step } from './answers.ts';
import type { ApiMetrics } from './api-metrics.ts';
import { clientAddress, trustedProxies } from './edge/addresses.ts';
import type { RequestRecorder } from './request-journal.ts';
import { traceRequest } from './request-spans.ts';

export interface RequestLogOptions {
  readonly log: Log;
  readonly metrics: ApiMetrics;
  /** The CIDR ranges of proxies whose `X-Forwarded-For` is trusted. */
  readonly proxies: readonly string[];
  /** Stores each request with a proven key. */
  readonly requests: Pick<RequestRecorder, 'add'>;
}

const MAX_LOGGED_PATH = 200;
const MAX_LOGGED_HOP = 100;
const BETWEEN_WARNINGS_MS = 1_000;
/** The five access checks, by the code with which each refuses. */
const CHECKS: Partial<Readonly<Record<RefusalCode, string>>> = {
  IP_NOT_ALLOWED: 'address',
  RATE_LIMITED: 'rate',
  INVALID_API_KEY: 'key',
  API_INTEGRATION_NOT_ENABLED: 'integration',
  NO_ACTIVE_CHARGING_PROFILE: 'profile',
};

/**
 * The outermost step: gives the request its id, turns errors into answers, and writes one log line. The line names the
 * key by its prefix, and does not contain the query, the address or the secret. The requests of proven keys are stored
 * separately.
 */
export function requestLog({ log, metrics, proxies, requests }: RequestLogOptions): Step {
  const trusts = trustedProxies(proxies);
  let nextWarningMs = 0;
  const warnOf = (ctx: Context, hop: string): void => {
    if (steadyClock.now() < nextWarningMs) return;
    nextWarningMs = steadyClock.now() + BETWEEN_WARNINGS_MS;
    const what = { forwarded_for: hop.slice(0, MAX_LOGGED_HOP), proxy: ctx.req.socket.remoteAddress };
    log.warn(
      what,
      "X-Forwarded-For is not an address: the request's address is unknown, and on no allow-list",
    );
  };
  for (const [code, check] of Object.entries(CHECKS)) metrics.accessRefusals.inc({ check, code }, 0);
  return async (ctx, next) => {
    const startedAtMs = steadyClock.now();
    Object.assign(ctx.state, {
      requestId: world.randomUUID(),
      address: clientAddress(ctx.req, trusts, (hop) => warnOf(ctx, hop)),
      ...splitTarget(ctx.req.url ?? ''),
    });
    try {
      await next();
    } catch (error) {
      const refusal = refusalOf(error);
      const level = refusal.code === 'INTERNAL_ERROR' ? 'error' : 'warn';
      log[level]({ err: error, request_id: ctx.state.requestId }, 'request failed');
      refuse(ctx, refusal);
    }
    const durationMs = steadyClock.now() - startedAtMs;
    const { code = '' } = ctx.state;
    metrics.requests.inc({ status: ctx.status, code });
    const check = code === '' ? undefined : CHECKS[code];
    if (check !== undefined) metrics.accessRefusals.inc({ check, code });
    metrics.requestDuration.observe({ status: ctx.status }, durationMs / 1000);
    log.info(lineOf(ctx, durationMs), 'request');
    traceRequest(ctx, startedAtMs);
    const { caller, address, code: refused = null, rows = null, query = null } = ctx.state;
    if (!caller?.proven || caller.prefix === undefined) return;
    const asked = { status: ctx.status, code: refused, rows, query };
    requests.add({ prefix: caller.prefix, address: address?.toString() ?? null, ...asked });
  };
}

function lineOf(ctx: Context, durationMs: number): Readonly<Record<string, unknown>> {
  return {
    request_id: ctx.state.requestId,
    method: ctx.method,
    path: ctx.state.path.slice(0, MAX_LOGGED_PATH),
    status: ctx.status,
    code: ctx.state.code,
    duration_ms: Math.round(durationMs * 100) / 100,
    key_prefix: ctx.state.caller?.prefix,
    rows: ctx.state.rows,
    ...traceField(ctx.state.requestId),
  };
}

/**
 * Splits a request target without decoding it, so that no path is malformed. An absolute target has scheme and host.
 */
function splitTarget(target: string): { path: string; rawQuery: string } {
  const relative = target.replace(/^https?:\/\/[^/?]*/i, '');
  const mark = relative.indexOf('?');
  return mark === -1
    ? { path: relative, rawQuery: '' }
    : { path: relative.slice(0, mark), rawQuery: relative.slice(mark + 1) };
}
