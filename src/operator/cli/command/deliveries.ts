import { loadAccount } from '../../../accounts/directory/load-directory.ts';
import type { Session } from './command.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** The stores and settings that decide which deliveries a transaction calls for. */
export function deliveryContext({ config, engines, clock }: Session) {
  return {
    store: engines.store(),
    queue: engines.queue(),
    clock,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: config.FUEL_DELIVERY_RETENTION_DAYS * DAY_MS,
  };
}

/** Each account as its stream says. */
export function accountOf({ engines }: Session) {
  return (accountId: number) => loadAccount(engines.store(), accountId);
}
