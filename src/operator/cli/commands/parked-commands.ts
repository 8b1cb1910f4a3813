import { Option } from '@commander-js/extra-typings';
import { FuelError } from '../../../base/errors.ts';
import { MAX_PARKED_READ } from '../../../event-store/event-store.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { DELIVERIES_GROUP } from '../../../push/fan-out/run-fan-out.ts';
import { ACCOUNTS_NAME, FOLLOWERS, type Follower } from '../../../service/ops/followers.ts';
import { readId } from '../../answers/filters.ts';
import { type ParkedAnswer, parkedAnswer, parkedBy } from '../../answers/follower.ts';
import { HIDDEN } from '../../answers/timeline.ts';
import { replayParked, retryAccounts, retryParked } from '../../parked/retry-parked.ts';
import { parkedAt, skipEvent } from '../../parked/skip-event.ts';
import { command, type Session } from '../command/command.ts';
import { currentAccounts } from '../command/known-names.ts';
import * as option from '../command/options.ts';

const followerOption = () =>
  new Option('--follower <name>', 'the follower, as fuel projection status names it')
    .choices(FOLLOWERS.map(({ name }) => name))
    .default(VIEW_NAME);

const retry = command({
  name: 'retry',
  summary: 'apply a parked event again (or --all of them)',
  example: 'fuel projection parked retry --all',
  syntax: (it) =>
    it
      .argument('[position]', 'the position of the event', readId)
      .addOption(followerOption())
      .option('--all', 'all parked events'),
  changes: true,
  async work(session, [position], { follower, all }) {
    const { engines, clock, author, out } = session;
    if ((position === undefined) === (all === undefined)) {
      throw option.usage('Give one position, or --all');
    }
    if (follower !== VIEW_NAME && follower !== ACCOUNTS_NAME && position !== undefined) {
      throw option.usage(`The follower ${follower} can only retry all of its parked events. Use --all`);
    }
    const store = engines.store();
    const options = { only: position, author, clock };
    const result =
      follower === ACCOUNTS_NAME
        ? await retryAccounts(store, await currentAccounts(session), options)
        : follower === VIEW_NAME
          ? await retryParked(store, engines.view(), options)
          : follower === DELIVERIES_GROUP
            ? await replayParked(store, engines.subscriptions(), { author, clock })
            : { retried: 0, still_parked: 0 }; // the notices park nothing, they wait
    if (position !== undefined && result.retried === 0)
      throw new FuelError(
        'REFUSED',
        `No event is parked at position ${position}. See \`fuel projection parked\``,
      );
    out.answer(result);
    if (result.still_parked === null)
      out.note(`The processes of ${follower} handle them again. What they park again will be listed`);
    return result.still_parked === 0 || result.still_parked === null ? 0 : 1;
  },
});

const skip = command({
  name: 'skip',
  summary: 'permanently skip a parked event, or the event that makes an account unreadable',
  example: 'fuel projection parked skip 1042 --reason "written by hand, without a name"',
  syntax: (it) =>
    it
      .argument('<position>', 'the position of the event', readId)
      .requiredOption('--reason <reason>', option.REASON, option.readText),
  changes: true,
  async work(session, [wanted], { reason }) {
    const { engines, clock, author, out } = session;
    const accounts = await currentAccounts(session);
    const parts = { store: engines.store(), view: engines.view(), subscriptions: engines.subscriptions() };
    const parked = await parkedAt(wanted, { ...parts, accounts });
    const isNew = await skipEvent(engines.store(), wanted, { author, reason, clock, parked });
    out.answer({ skipped: Number(isNew) });
    if (!isNew) out.note('The event was already skipped');
  },
});

export const addParkedCommands = command(
  {
    name: 'parked',
    summary: 'list the events that a follower of the log could not apply, oldest first',
    example: 'fuel projection parked --personal',
    lists: { what: 'parked events' },
    syntax: (it) => it.addOption(followerOption()).option('--personal', option.PERSONAL),
    async work(session, _, { follower, personal }) {
      for await (const event of parkedOf(session, follower))
        await session.out.row(event, { shown: personal ? event : { ...event, reason: HIDDEN } });
    },
  },
  [retry, skip],
);

async function* parkedOf(session: Session, follower: Follower['name']): AsyncGenerator<ParkedAnswer> {
  const { engines, out } = session;
  const subscriptions = engines.subscriptions();
  const accounts = follower === ACCOUNTS_NAME ? await currentAccounts(session) : engines.accounts();
  const parts = { store: engines.store(), view: engines.view(), subscriptions, accounts };
  for await (const event of parkedBy(follower, parts)) yield parkedAnswer(follower, event);
  if (follower !== DELIVERIES_GROUP) return;
  if (((await subscriptions.status(follower))?.parked ?? 0) > MAX_PARKED_READ)
    out.note(`Only the oldest ${MAX_PARKED_READ} parked events of ${follower} are listed`);
}
