import { printableData } from '../../../event-store/codec.ts';
import { MAX_PARKED_LOOKED_AT } from '../../../event-store/skipped-events.ts';
import type { FollowerStatus } from '../../answers/follower.ts';
import { type ParkedAnswer, parkedAnswer, parkedBy } from '../../answers/parked.ts';
import type { ConsoleParts } from './console-parts.ts';
import { withoutDriver } from './record-facts.ts';

/** As many as an operator reads; the command lists all. */
const MAX_PARKED = 50;

/** The oldest parked events of those followers that have some, without what a reason may quote of the driver. */
export async function parkedEvents(
  parts: Pick<ConsoleParts, 'store' | 'view' | 'subscriptions'>,
  followers: readonly FollowerStatus[],
): Promise<readonly ParkedAnswer[]> {
  const found = followers.filter(({ parked }) => parked > 0);
  return (await Promise.all(found.map(({ name }) => parkedOf(name, parts)))).flat();
}

async function parkedOf(
  follower: string,
  parts: Pick<ConsoleParts, 'store' | 'view' | 'subscriptions'>,
): Promise<readonly ParkedAnswer[]> {
  const parked: ParkedAnswer[] = [];
  for await (const event of parkedBy(follower, parts, MAX_PARKED_LOOKED_AT)) {
    if (parked.push(parkedAnswer(follower, event)) === MAX_PARKED) break;
  }
  const streams = await parts.store.readStreams(parked.map(({ stream }) => stream));
  return parked.map((event, at) => {
    const recorded = streams[at]?.find(({ revision }) => revision === event.revision);
    return { ...event, reason: withoutDriver(event.reason, recorded && printableData(recorded)) };
  });
}
