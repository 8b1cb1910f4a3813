import type { AlarmClock, Clock } from '../../base/clock.ts';
import { SerialWork } from '../../base/serial-work.ts';
import { world } from '../../base/world.ts';
import type { HostOwners } from '../pace/host-owners.ts';
import type { Pace } from '../pace/pace.ts';
import type { ClaimedDelivery, NewDelivery } from '../queue/delivery.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';
import { LEASE_MS, Lease } from './lease.ts';

/** New deliveries in one commit, which takes a few milliseconds of the event loop. */
const MAX_STORED = 100;

interface ClaimsOptions {
  readonly queue: Pick<DeliveryQueue, 'enqueue' | 'claim'>;
  readonly pace: Pick<Pace, 'grant'>;
  readonly owners: Pick<HostOwners, 'look'>;
  readonly clock: AlarmClock;
  readonly steady: Clock;
  readonly holder: string;
  /** The longest time that an attempt may have to wait. */
  readonly longestWaitMs: number;
  /** Starts the attempts of deliveries that were claimed under the lease. */
  readonly start: (deliveries: readonly ClaimedDelivery[], lease: Lease) => void;
  readonly onWaiting: (webhooks: number) => void;
  /** While this returns false, new deliveries are stored but none are claimed. */
  readonly mayClaim: () => boolean;
}

/** Claims as many deliveries as the pace has room for. Claims run one after the other, since each relies on its grant. */
export class Claims {
  readonly #options: ClaimsOptions;
  readonly #serial = new SerialWork();

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  /** Stores new deliveries, and claims as many of them as the pace has room for. Rejects as the queue does. */
  async accept(deliveries: readonly NewDelivery[]): Promise<void> {
    for (let from = 0; from < deliveries.length; from += MAX_STORED) {
      if (from > 0) await world.nextTurn();
      await this.#store(deliveries.slice(from, from + MAX_STORED));
    }
  }

  /**
   * Claims until nothing more is due that has room. Returns the time until the next claim in milliseconds. Lanes without room
   * do not count: they continue when one of their attempts ends.
   */
  async claimDue(): Promise<number> {
    const { queue, pace, owners, clock, steady, longestWaitMs, onWaiting, mayClaim } = this.#options;
    for (;;) {
      await owners.look();
      const { claimed, nextAtMs, grant } = await this.#serial.run(async () => {
        const grant = pace.grant(steady.now());
        if (!mayClaim() || grant.limit <= 0) return { claimed: [], nextAtMs: undefined, grant };
        const lease = new Lease(clock, steady);
        const claim = await queue.claim({ ...this.#claimer(), ...grant, longestWaitMs });
        this.#options.start(claim.claimed, lease);
        return { ...claim, grant };
      });
      if (claimed.length === 0) {
        onWaiting(grant.waiting());
        return Math.min((nextAtMs ?? Infinity) - clock.now(), grant.waitMs());
      }
      await world.nextTurn(); // claims are synchronous work, so answers are read in between
    }
  }

  /** Resolves when no claim is under way. */
  whenIdle(): Promise<void> {
    return this.#serial.whenIdle();
  }

  async #store(deliveries: readonly NewDelivery[]): Promise<void> {
    const { queue, pace, owners, clock, steady, mayClaim } = this.#options;
    await owners.look();
    await this.#serial.run(async () => {
      const { laneCapacity } = pace.grant(steady.now(), deliveries);
      const lease = new Lease(clock, steady);
      const claimFor = mayClaim() ? { ...this.#claimer(), laneCapacity } : undefined;
      this.#options.start(await queue.enqueue(deliveries, claimFor), lease);
    });
  }

  #claimer() {
    const { clock, holder } = this.#options;
    return { nowMs: clock.now(), holder, leaseMs: LEASE_MS };
  }
}
