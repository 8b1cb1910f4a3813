import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';
import { type Config, retentionMs } from '../../base/config/config.ts';
import { FuelError } from '../../base/errors.ts';
import { readThroughSoon } from '../../engines/sqlite/embedded-files.ts';
import { refusalAnswer } from '../../pull/answers.ts';
import { generatedCertificate } from '../../pull/server/certificate.ts';
import { damagedEvents } from '../../pull/view/parked-events.ts';
import type { OperatorSide, RunningProcess } from '../../service/service.ts';
import { Console } from '../console/console.ts';
import { AttemptHistory, FigureHistory } from '../console/figures/history.ts';
import type { ConsoleParts, Proof } from '../console/figures/parts.ts';
import { startNightly, verifyInThread } from './nightly.ts';

/**
 * What operators have in every process: the console, and where the view is written also the nightly verification, since
 * what it repairs there; the deliveries that it stores are sent by whoever has the webhooks.
 */
export function operatorSide(config: Config, clock: Clock): OperatorSide {
  let console: Console | undefined;
  return {
    pages(readiness) {
      const hosts = config.FUEL_OPS_HOSTS ?? [];
      console = new Console({ hosts, environment: config.FUEL_ENVIRONMENT, clock, readiness });
      return console.handle;
    },
    start(running, parts) {
      let lastProof: Proof | undefined;
      console?.serve(consoleParts(running, () => lastProof));
      if (!running.roles.includes('projector')) return;
      const { engines, host, log, metrics } = running;
      const nightly = startNightly({
        coordination: engines.coordination(),
        holder: host.holder,
        log,
        verify: (signal) => verifyInThread(host, signal),
        onRepaired(repaired) {
          lastProof = { atMs: clock.now(), ...repaired };
          metrics.agreementRepairs.inc({ what: 'view' }, repaired.view);
          metrics.agreementRepairs.inc({ what: 'deliveries' }, repaired.deliveries);
        },
      });
      parts.add('nightly verification', nightly);
    },
  };
}

/** What the operator's console reads of this process and its stores. */
function consoleParts(running: RunningProcess, lastProof: () => Proof | undefined): ConsoleParts {
  const { config, engines, metrics, disk, host, roles } = running;
  const [attempts, history] = [new AttemptHistory(), new FigureHistory()];
  metrics.onTaken((thread, counted) => {
    if (thread === 'webhooks') attempts.take(counted);
  });
  metrics.shared.onReading = (reading) => history.add(reading);
  return {
    ...running,
    id: host.holder,
    engineNames: engines.remote.map(({ name }) => name),
    lastProof,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: retentionMs(config),
    store: engines.store(),
    view: engines.view(),
    subscriptions: engines.subscriptions(),
    queue: engines.queue(),
    coordination: engines.coordination(),
    disk: async () => disk?.(),
    ...{ attempts, history },
    // Where that takes long the night's finding counts.
    damage: async () =>
      readThroughSoon(config, engines)
        ? damagedEvents(engines.store(), () => engines.view())
        : (lastProof()?.damage ?? []),
    certificateEndsAtMs: () => certificateEndsAtMs(config, roles),
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
