import { Counter, Histogram, type Registry } from 'prom-client';

const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** The metrics of the pull API. */
export type ApiMetrics = ReturnType<typeof apiMetrics>;

/** Adds the metrics of the pull API to the registry of the process. */
export function apiMetrics(registry: Registry) {
  const registers = [registry];
  return {
    requests: new Counter({
      name: 'fuel_http_requests_total',
      help: 'Answered requests, by status and error code (empty for a page). 5xx must not grow.',
      labelNames: ['status', 'code'],
      registers,
    }),
    requestDuration: new Histogram({
      name: 'fuel_http_request_duration_seconds',
      help: 'Time from a request to its answer, by status.',
      labelNames: ['status'],
      buckets: DURATION_BUCKETS_SECONDS,
      registers,
    }),
    accessRefusals: new Counter({
      name: 'fuel_access_refusals_total',
      help: 'Requests that an access check refused, by check (address, rate, key, integration, profile) and code. Look at one that grows suddenly.',
      labelNames: ['check', 'code'],
      registers,
    }),
    requestsNotKept: new Counter({
      name: 'fuel_requests_not_kept_total',
      help: 'Requests that fuel key requests does not list, because their store was unavailable for too long.',
      registers,
    }),
    pageRows: new Counter({
      name: 'fuel_page_rows_total',
      help: 'Transaction records returned.',
      registers,
    }),
    edgeNotEnforced: new Counter({
      name: 'fuel_edge_not_enforced_total',
      help: 'Requests without a valid token of the external gateway, whose set-up must be corrected.',
      registers,
    }),
    connectionsTurnedAway: new Counter({
      name: 'fuel_connections_turned_away_total',
      help: 'Connections that were closed unanswered, by reason: peer_limit, network_limit, total_limit, handshake_rate, not_a_proxy.',
      labelNames: ['reason'],
      registers,
    }),
  };
}
