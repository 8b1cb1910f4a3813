import { retentionMs } from '../../../base/config/config.ts';
import type { Session } from './command.ts';

/** The stores and settings that decide which deliveries a transaction calls for. */
export function deliveryContext({ config, engines, clock }: Session) {
  return {
    store: engines.store(),
    queue: engines.queue(),
    clock,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: retentionMs(config),
  };
}
