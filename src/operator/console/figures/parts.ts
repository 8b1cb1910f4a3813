import type { Directory } from '../../../accounts/directory/fold/directory.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Coordination } from '../../../base/coordination/coordination.ts';
import type { DiskState } from '../../../base/disk/disk.ts';
import type { Environment } from '../../../domain/account-events.ts';
import type { Damage, EventStore, PersistentSubscriptions } from '../../../event-store/event-store.ts';
import type { ViewReads } from '../../../pull/view/transactions-view.ts';
import type { DeliveryReads, LaneReads } from '../../../push/queue/delivery-queue.ts';
import type { Readiness } from '../../../service/ops/ops-server.ts';
import type { Repaired } from '../../verify/verify-last-days.ts';
import type { AttemptHistory, FigureHistory } from './history.ts';

/** A nightly verification that this process made. */
export interface Proof extends Repaired {
  readonly atMs: number;
}

/** How an access check answers a request, as the pull API does. */
export type GateCode =
  | 'INVALID_API_KEY'
  | 'API_INTEGRATION_NOT_ENABLED'
  | 'NO_ACTIVE_CHARGING_PROFILE'
  | 'SERVICE_UNAVAILABLE';

/** What the console reads. It changes nothing. */
export interface ConsoleParts {
  readonly environment: Environment;
  readonly retentionMs: number;
  readonly clock: Clock;
  /** This process's id. */
  readonly id: string;
  readonly roles: readonly string[];
  readonly startedAtMs: number;
  readonly store: EventStore;
  readonly view: Pick<ViewReads, 'checkpoint' | 'building' | 'countParked' | 'parked' | 'find'>;
  readonly subscriptions: Pick<PersistentSubscriptions, 'status' | 'parked'>;
  readonly queue: DeliveryReads & LaneReads;
  readonly coordination: Pick<Coordination, 'holder' | 'live'>;
  /** As live as the access checks of this process. */
  readonly directory: Pick<Directory, 'states' | 'account' | 'key' | 'changes' | 'counts'>;
  readonly attempts: Pick<AttemptHistory, 'minutes'>;
  readonly history: Pick<FigureHistory, 'readings'>;
  /** The servers that this process depends on, as its readiness names them. */
  readonly engineNames: readonly string[];
  readonly readiness: () => Readiness | Promise<Readiness>;
  /** When the certificate of the pull API ends; `undefined` where this process has none. */
  readonly certificateEndsAtMs: () => Promise<number | undefined>;
  /** The disk of the embedded files; `undefined` where there are none. */
  readonly disk: () => Promise<DiskState | undefined>;
  readonly lastProof: () => Proof | undefined;
  /** What of the event store is damaged, as far as that is known. */
  readonly damage: () => Promise<readonly Damage[]>;
  readonly statusOf: (code: GateCode) => number;
}
