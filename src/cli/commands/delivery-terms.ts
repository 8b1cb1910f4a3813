import type { Session } from '../command/command.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** What it takes to decide, and to look up, which deliveries a transaction calls for. */
export function deliveryTerms({ config, engines, clock }: Session) {
  return {
    store: engines.store(),
    queue: engines.queue(),
    clock,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: config.FUEL_DELIVERY_RETENTION_DAYS * DAY_MS,
  };
}
