import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { OperatorSide } from '../../service/service.ts';
import { createConsole } from '../console/console.ts';
import { consoleParts, type Proof } from '../console/figures/console-parts.ts';
import { type Schedule, startNightly, verifyNight } from './nightly.ts';

/**
 * The operator's parts of a process: the console, and with the role projector also the nightly verification, which repairs the
 * view there. The deliveries that it stores are sent by the processes with the role webhooks.
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
        coordination: engines.coordination(),
        holder,
        log,
        schedule,
        verify: (signal) => verifyNight(running, signal),
        onRepaired(repaired) {
          lastProof = { atMs: clock.now(), ...repaired };
          for (const what of ['accounts', 'view', 'deliveries'] as const)
            metrics.agreementRepairs.inc({ what }, repaired[what]);
        },
      });
      parts.add('nightly verification', nightly);
    },
  };
}
