import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Directory } from '../../../projections/directory.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { DiskState } from '../../base/disk/disk.ts';
import { FuelError } from '../../base/errors.ts';
import type { Engines } from '../../engines/engines.ts';
import { readThroughSoon } from '../../engines/sqlite/data-dir/embedded-files.ts';
import { refusalAnswer } from '../../pull/answers.ts';
import { generatedCertificate } from '../../pull/server/certificate.ts';
import { damagedEvents } from '../../pull/view/damaged-events.ts';
import type { Metrics } from '../../service/ops/metrics.ts';
import type { ConsoleParts, Proof } from '../console/figures/parts.ts';
import { DAY_MS } from './day.ts';

export interface ConsoleSources {
  readonly config: Config;
  readonly roles: readonly string[];
  readonly clock: Clock;
  readonly engines: Engines;
  readonly metrics: Metrics;
  readonly directory: Directory;
  /** Of this process. */
  readonly id: string;
  readonly startedAtMs: number;
  readonly readiness: ConsoleParts['readiness'];
  readonly disk: (() => Promise<DiskState>) | undefined;
  readonly lastProof: () => Proof | undefined;
}

/** What the operator's console reads of this process and its stores. */
export function consoleParts({ config, engines, metrics, disk, ...rest }: ConsoleSources): ConsoleParts {
  return {
    ...rest,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: config.FUEL_DELIVERY_RETENTION_DAYS * DAY_MS,
    store: engines.store(),
    view: engines.view(),
    subscriptions: engines.subscriptions(),
    queue: engines.queue(),
    reads: engines.deliveryReads(),
    coordination: engines.coordination(),
    disk: async () => disk?.(),
    attempts: metrics.attempts,
    history: metrics.shared.history,
    // Where that takes long the night's finding counts.
    damage: async () =>
      readThroughSoon(config)
        ? damagedEvents(engines.store(), () => engines.view())
        : (rest.lastProof()?.damage ?? []),
    certificateEndsAtMs: () => certificateEndsAtMs(config, rest.roles),
    statusOf: (code) => refusalAnswer({ code }, '').status,
  };
}

async function certificateEndsAtMs(config: Config, roles: readonly string[]): Promise<number | undefined> {
  if (!roles.includes('api') || config.FUEL_TLS === 'terminated') return undefined;
  const file = config.FUEL_TLS_CERT ?? generatedCertificate(config).cert;
  try {
    return new X509Certificate(await readFile(file)).validToDate.getTime();
  } catch (error) {
    throw new FuelError('CONFIG_INVALID', `${file} can not be read`, { cause: error });
  }
}
