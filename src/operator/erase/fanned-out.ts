import { steadyClock } from '../../base/clock.ts';
import { type Coordination, PROCESS_MAX_AGE_MS } from '../../base/coordination/coordination.ts';
import { world } from '../../base/world.ts';
import type { PersistentSubscriptions } from '../../event-store/event-store.ts';
import type { Position } from '../../event-store/recorded-event.ts';
import { REDACTION_SEEN_MS } from '../../push/fan-out/redacted-drivers.ts';
import { DELIVERIES_GROUP } from '../../push/fan-out/run-fan-out.ts';

const CHECK_EVERY_MS = 50;

/**
 * Waits until no process can make a delivery of an event as it was before it was erased or redacted: all events up to its position
 * are fanned out, or every process has had time to learn of the change.
 */
export async function fannedOut(
  last: Position,
  {
    coordination,
    subscriptions,
  }: {
    readonly coordination: Pick<Coordination, 'live'>;
    readonly subscriptions: Pick<PersistentSubscriptions, 'status'>;
  },
): Promise<void> {
  const untilMs = steadyClock.now() + 2 * REDACTION_SEEN_MS;
  while (steadyClock.now() < untilMs) {
    const live = await coordination.live(PROCESS_MAX_AGE_MS);
    if (!live.some(({ roles }) => roles.includes('webhooks'))) return;
    const status = await subscriptions.status(DELIVERIES_GROUP);
    if (status !== undefined && status.position >= last) return;
    await world.sleep(CHECK_EVERY_MS);
  }
}
