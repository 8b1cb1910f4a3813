import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { isUnavailable } from '../errors.ts';
import { droppedLogLines } from '../log.ts';
import { deliveryMetrics } from './delivery-metrics.ts';
import { loopDelayMetric } from './loop-delay.ts';
import { SHARED, SharedFigures } from './shared-figures.ts';

/** How often the monitor wakes the process; its default of 10 ms costs half a percent of a core. */
const LOOP_DELAY_PRECISION_MS = 100;
const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export type Metrics = ReturnType<typeof createMetrics>;

/** All metrics of one process, Node's (memory, event loop delay) included, in one registry. */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_DELAY_PRECISION_MS });
  new Counter({
    name: 'fuel_log_lines_dropped_total',
    help: 'Log lines that were dropped because standard output took none.',
    registers,
    collect() {
      this.reset();
      this.inc(droppedLogLines());
    },
  });
  return {
    registry,
    ...apiMetrics(registry),
    deliveries: deliveryMetrics(registry),
    loopDelay: loopDelayMetric(registry),
    shared: new SharedFigures(registry),
    agreementRepairs: agreementRepairs(registry),
  } as const;
}

/** What the pull API answers. */
function apiMetrics(registry: Registry) {
  const registers = [registry];
  return {
    requests: new Counter({
      name: 'fuel_http_requests_total',
      help: 'Answered requests, by status and error code (empty for a page).',
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
      help: 'Requests that an access check refused, by check (address, rate, key, integration, profile) and code.',
      labelNames: ['check', 'code'],
      registers,
    }),
    pageRows: new Counter({
      name: 'fuel_page_rows_total',
      help: 'Transaction records returned.',
      registers,
    }),
    pageEntriesRead: new Counter({
      name: 'fuel_page_entries_read_total',
      help: 'Index entries read to find the records of pages.',
      registers,
    }),
    edgeNotEnforced: new Counter({
      name: 'fuel_edge_not_enforced_total',
      help: 'Requests without a valid token of the external gateway: the operator must correct the set-up.',
      registers,
    }),
    connectionsTurnedAway: new Counter({
      name: 'fuel_connections_turned_away_total',
      help: 'Connections closed unanswered: peer_limit, total_limit, not_a_proxy.',
      labelNames: ['reason'],
      registers,
    }),
  } as const;
}

function agreementRepairs(registry: Registry): Counter<'what'> {
  const repairs = new Counter({
    name: 'fuel_agreement_repairs_total',
    help: 'Rows of the view, and deliveries, that the nightly verification repaired.',
    labelNames: ['what'],
    registers: [registry],
  });
  for (const what of ['view', 'deliveries']) repairs.inc({ what }, 0); // there before the first repair
  return repairs;
}

export interface ProjectionReading {
  readonly position: number;
  /** The end of the log. */
  readonly head: number;
  readonly parked: number;
}

/** Gauges of the transactions view, read when they are scraped; NaN while an engine is unavailable. */
export function addProjectionMetrics(registry: Registry, read: () => Promise<ProjectionReading>): void {
  const gauge = (name: string, help: string, pick: (reading: ProjectionReading) => number): Gauge =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        try {
          this.set(pick(await read()));
        } catch (error) {
          if (!isUnavailable(error)) throw error;
          this.set(Number.NaN);
        }
      },
    });
  gauge('fuel_event_store_position', `${SHARED} where the log of events ends.`, ({ head }) => head);
  gauge(
    'fuel_view_position',
    `${SHARED} the position up to which the transactions view has applied the log.`,
    ({ position }) => position,
  );
  gauge('fuel_view_parked_events', `${SHARED} events that the view parked.`, ({ parked }) => parked);
}
