import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { OperatorSide } from '../../service/service.ts';
import { createConsole } from '../console/console.ts';
import { consoleParts, type Proof } from '../console/figures/console-parts.ts';
import { verifyNight } from './night.ts';
import { type Schedule, startNightly } from './nightly.ts';

/**
 * What operators have in every process: the console, and where the view is written also the nightly verification, since
 * what it repairs there; the deliveries that it stores are sent by whoever has the webhooks.
 */
export function operatorSide(config: Config, clock: Clock, schedule?: Schedule): OperatorSide {
  let console: ReturnType<typeof createConsole> | undefined;
  return {
    pages(readiness) {
      const hosts = config.FUEL_OPS_HOSTS ?? [];
      console = createConsole({ hosts, environment: config.FUEL_ENVIRONMENT, clock, readiness });
      return console.handle;
    },
    start(running, parts) {
      let lastProof: Proof | undefined;
      console?.serve(consoleParts(running, () => lastProof));
      const { engines, holder, log, metrics } = running;
      if (!running.roles.includes('projector')) return;
      const nightly = startNightly({
        ...{ coordination: engines.coordination(), holder, log, schedule },
        verify: (signal) => verifyNight(running, signal),
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
