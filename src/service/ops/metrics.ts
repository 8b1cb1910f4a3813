import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client';
import type { DiskState } from '../../base/disk/disk.ts';
import { droppedLogLines } from '../../base/log.ts';
import { apiMetrics } from '../../pull/api-metrics.ts';
import { machine } from './machine.ts';
import { sharedFigures } from './shared-figures.ts';
import { type MetricsJson, workMetrics } from './work-metrics.ts';

/** How often the monitor wakes the process; its default of 10 ms costs half a percent of a core. */
const LOOP_DELAY_PRECISION_MS = 100;

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * All metrics of one process. `registry` has what only the main thread counts, including Node's figures (memory, event
 * loop delay); `counted` has what every thread counts. `text` adds up the threads.
 */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  machine.collectDefaultMetrics({
    register: registry,
    eventLoopMonitoringPrecision: LOOP_DELAY_PRECISION_MS,
  });
  new Counter({
    name: 'fuel_log_lines_dropped_total',
    help: 'Log lines that were dropped because standard output did not accept them.',
    registers,
    collect() {
      this.reset();
      this.inc(droppedLogLines());
    },
  });
  const counted = new Registry();
  const takers: ((thread: string, metrics: MetricsJson) => void)[] = [];
  const ofThreads = new Map<string, MetricsJson>();
  return {
    registry,
    counted,
    ...apiMetrics(registry),
    ...workMetrics(counted),
    shared: sharedFigures(registry),
    agreementRepairs: agreementRepairs(registry),
    certificateEnd: certificateEnd(registry),
    noticesGivenUp: new Counter({
      name: 'fuel_notices_given_up_total',
      help: 'Notices that nobody will get: refused by the mail server, or not mailed for a day.',
      registers,
    }),
    contentType: registry.contentType,
    /** Takes everything that a thread has counted since its start. */
    take(thread: string, metrics: MetricsJson): void {
      ofThreads.set(thread, metrics);
      for (const taker of takers) taker(thread, metrics);
    },
    /** Passes everything that `take` gets to `taker` too. */
    onTaken: (taker: (typeof takers)[number]): void => void takers.push(taker),
    /** Returns all metrics in the text format of Prometheus. */
    async text(): Promise<string> {
      const [once, main] = await Promise.all([registry.metrics(), counted.getMetricsAsJSON()]);
      const sums = AggregatorRegistry.aggregate([main, ...ofThreads.values()]);
      return `${once}\n${await sums.metrics()}`;
    },
  } as const;
}

function agreementRepairs(registry: Registry): Counter<'what'> {
  const repairs = new Counter({
    name: 'fuel_agreement_repairs_total',
    help: 'Accounts, rows of the view, and deliveries that the nightly verification repaired: something other than the service changed them, or the service has a fault.',
    labelNames: ['what'],
    registers: [registry],
  });
  for (const what of ['accounts', 'view', 'deliveries']) repairs.inc({ what }, 0); // shown before the first repair
  return repairs;
}

/** Adds a gauge that says if the process is ready, like `/readyz`. */
export function addReadiness(
  registry: Registry,
  readiness: () => Promise<{ readonly ready: boolean }>,
): void {
  new Gauge({
    name: 'fuel_ready',
    help: '1 while the process is ready, as /readyz says, else 0.',
    registers: [registry],
    async collect() {
      this.set((await readiness()).ready ? 1 : 0);
    },
  });
}

/**
 * Set when a certificate is loaded, since the files may hold a half-finished renewal. NaN if there is no certificate.
 */
function certificateEnd(registry: Registry): Gauge {
  const gauge = new Gauge({
    name: 'fuel_certificate_end_timestamp_seconds',
    help: 'When the certificate of the public listener expires.',
    registers: [registry],
  });
  gauge.set(Number.NaN);
  return gauge;
}

/** Gauges of the disk that holds the embedded files, read when they are scraped. */
export function addDiskMetrics(registry: Registry, read: () => Promise<DiskState>): void {
  const gauge = (name: string, help: string, pick: (disk: DiskState) => number): Gauge =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set(pick(await read()));
      },
    });
  gauge(
    'fuel_disk_free_bytes',
    'Free space on the disk of the data directory, with embedded files.',
    ({ freeBytes }) => freeBytes,
  );
  gauge(
    'fuel_disk_refuses_commits',
    '1 while the disk of the data directory takes no commits, or has less than 1 MiB left; else 0.',
    ({ refusal }) => (refusal === undefined ? 0 : 1),
  );
}
