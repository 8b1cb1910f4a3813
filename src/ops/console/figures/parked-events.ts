import { printableData } from '../../../event-store/codec.ts';
import { MAX_PARKED_LOOKED_AT } from '../../../event-store/event-store.ts';
import { parkedByGroup } from '../../../event-store/skipped-events.ts';
import type { ParkedTransactionEvent } from '../../../transactions/view/checkpoint.ts';
import { parkedByView } from '../../../transactions/view/operate.ts';
import { VIEW_NAME } from '../../../transactions/view/projector.ts';
import { type FollowerStatus, GROUPS } from '../../followers.ts';
import type { ConsoleParts } from './parts.ts';
import { withoutDriver } from './record-facts.ts';

/** As many as an operator reads; the command lists all. */
const MAX_PARKED = 50;

export interface ParkedFigure {
  readonly follower: FollowerStatus['name'];
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  /** Without what it may quote of the driver. */
  readonly reason: string;
  readonly parkedAtMs: number;
}

/** The oldest parked events of those followers that have some. */
export async function parkedEvents(
  parts: Pick<ConsoleParts, 'store' | 'view' | 'subscriptions'>,
  followers: readonly FollowerStatus[],
): Promise<readonly ParkedFigure[]> {
  const has = (name: string): boolean =>
    followers.some((follower) => follower.name === name && follower.parked > 0);
  const groups = GROUPS.map(({ name }) => name).filter(has);
  const ofView = has(VIEW_NAME) ? await parkedOfView(parts) : [];
  const ofGroups = await Promise.all(
    groups.map(async (follower) => {
      const { store, subscriptions } = parts;
      const parked = await parkedByGroup(store, subscriptions, {
        group: follower,
        limit: MAX_PARKED_LOOKED_AT,
      });
      return parked.slice(0, MAX_PARKED).map(({ event, reason, parkedAtMs }): ParkedFigure => {
        const { position, stream, revision, type } = event;
        const shown = withoutDriver(reason, printableData(event));
        return { follower, position, stream, revision, type, reason: shown, parkedAtMs };
      });
    }),
  );
  return [...ofView, ...ofGroups.flat()];
}

async function parkedOfView({
  view,
  store,
}: Pick<ConsoleParts, 'store' | 'view'>): Promise<readonly ParkedFigure[]> {
  const parked: ParkedTransactionEvent[] = [];
  for await (const event of parkedByView(store, view)) {
    if (parked.push(event) === MAX_PARKED) break;
  }
  const streams = await store.readStreams(parked.map(({ stream }) => stream));
  return parked.map((event, at) => {
    const recorded = streams[at]?.find(({ revision }) => revision === event.revision);
    const reason = withoutDriver(event.reason, recorded && printableData(recorded));
    return { ...event, follower: VIEW_NAME, reason };
  });
}
