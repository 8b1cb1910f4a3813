import { PROCESS_MAX_AGE_MS } from '../../../base/coordination/coordination.ts';
import { FuelError } from '../../../base/errors.ts';
import { MAX_PARKED_READ } from '../../../event-store/event-store.ts';
import { recordOperations } from '../../../event-store/operations.ts';
import type { EventRef } from '../../../event-store/recorded-event.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { DELIVERIES_GROUP } from '../../../push/fan-out/run-fan-out.ts';
import { FOLLOWERS, type Follower } from '../../../service/ops/followers.ts';
import { readId } from '../../answers/filters.ts';
import { type ParkedAnswer, parkedAnswer, parkedBy, roleOf } from '../../answers/follower.ts';
import { retryParked } from '../../parked/retry-parked.ts';
import { skipEvent } from '../../parked/skip-event.ts';
import { command, type Session } from '../command/command.ts';
import * as option from '../command/options.ts';

const follower = option.withDefault(
  option.choice(
    'name',
    'the follower, as fuel projection status names it',
    FOLLOWERS.map(({ name }) => name),
  ),
  VIEW_NAME,
);

/** The result of a retry. `still_parked` is `null` if the follower tries again in its own time. */
interface Retried {
  readonly retried: number;
  readonly still_parked: number | null;
}

/** The notices park nothing: they wait. */
const NOTHING_PARKED: Retried = { retried: 0, still_parked: 0 };

const retry = command({
  usage: 'retry [position]',
  summary: 'apply a parked event again (or --all of them)',
  example: 'fuel projection parked retry --all',
  options: { follower, all: option.flag('all parked events') },
  changes: true,
  async work(session, [position], { follower, all }) {
    const { engines, clock, author, out } = session;
    if ((position === undefined) === (all === undefined)) {
      throw option.usage('name one position or --all');
    }
    if (follower !== VIEW_NAME && position !== undefined) {
      throw option.usage(`${follower} can only try all of its parked events again: use --all`);
    }
    const only = position === undefined ? undefined : readId(position);
    const result: Retried =
      follower === VIEW_NAME
        ? await retryParked(engines.store(), engines.view(), { only, author, clock })
        : follower === DELIVERIES_GROUP
          ? await replayParked(session)
          : NOTHING_PARKED;
    if (only !== undefined && result.retried === 0) throw notParked(only);
    out.answer(result);
    if (result.still_parked === null)
      out.note(`the processes of ${follower} handle them again; what they park again will be listed`);
    return result.still_parked === 0 || result.still_parked === null ? 0 : 1;
  },
});

const skip = command({
  usage: 'skip <position>',
  summary:
    'permanently skip an event that cannot be applied: one that made its account unreadable, or a parked one',
  example: 'fuel projection parked skip 1042 --reason "written by hand, without a name"',
  args: [readId],
  options: { reason: option.required(option.reason) },
  changes: true,
  async work({ engines, clock, author, out }, [wanted], { reason }) {
    const parked = await parkedTransactionEvent(engines, wanted);
    const isNew = await skipEvent(engines.store(), wanted, { author, reason, clock, parked });
    out.answer({ skipped: Number(isNew) });
    if (!isNew) out.note('it was already skipped');
  },
});

export const addParkedCommands = command(
  {
    usage: 'parked',
    summary: 'list the events that a follower of the log could not apply, oldest first',
    example: 'fuel projection parked',
    options: { follower },
    async work(session, _, { follower }) {
      for await (const event of parkedOf(session, follower)) await session.out.row(event);
    },
  },
  [retry, skip],
);

/** The event that is parked at this position, even if it was skipped already. */
async function parkedTransactionEvent(
  engines: Session['engines'],
  position: number,
): Promise<EventRef | undefined> {
  const [byView] = await engines.view().parked({ after: position - 1, limit: 1 });
  if (byView?.position === position) return byView;
  const parked = await engines.subscriptions().parked(DELIVERIES_GROUP);
  return parked.find(({ event }) => event.position === position)?.event;
}

async function* parkedOf(
  { engines, out }: Session,
  follower: Follower['name'],
): AsyncGenerator<ParkedAnswer> {
  const subscriptions = engines.subscriptions();
  const parts = { store: engines.store(), view: engines.view(), subscriptions };
  for await (const event of parkedBy(follower, parts)) yield parkedAnswer(follower, event);
  if (follower !== DELIVERIES_GROUP) return;
  if (((await subscriptions.status(follower))?.parked ?? 0) > MAX_PARKED_READ)
    out.note(`${follower} has parked more: only the oldest ${MAX_PARKED_READ} are listed`);
}

/** Hands the parked events to the consumers again, after it recorded the oldest of their positions. */
async function replayParked({ engines, clock, author }: Session): Promise<Retried> {
  const subscriptions = engines.subscriptions();
  const positions = (await subscriptions.parked(DELIVERIES_GROUP)).map(({ event }) => event.position);
  if (positions.length > 0) {
    const data = { projection: DELIVERIES_GROUP, positions };
    await recordOperations(engines.store(), [{ type: 'ParkedRetried', data }], { author, clock });
  }
  return { retried: await subscriptions.replayParked(DELIVERIES_GROUP), still_parked: null };
}

/**
 * Has the consumers of the deliveries handle the parked events again, so that nothing stays parked that has been dealt with. If
 * there are no consumers they do so when they start, since EventStoreDB loses what is replayed to nobody when it restarts.
 */
export async function replayWhereConsumed(engines: Session['engines']): Promise<void> {
  const live = await engines.coordination().live(PROCESS_MAX_AGE_MS);
  if (!live.some(({ roles }) => roles.includes(roleOf(DELIVERIES_GROUP)))) return;
  const subscriptions = engines.subscriptions();
  if ((await subscriptions.status(DELIVERIES_GROUP)) !== undefined)
    await subscriptions.replayParked(DELIVERIES_GROUP);
}

function notParked(position: number): FuelError {
  return new FuelError(
    'REFUSED',
    `no event is parked at position ${position}: fuel projection parked lists all parked events`,
  );
}
