import { VIEW_NAME } from '../../pull/view/projector.ts';
import { ACCOUNTS_NAME } from '../../service/ops/followers.ts';
import { type FollowerStatus, roleOf } from '../answers/follower.ts';
import { act, type Check, notice, type Problem, right } from './check.ts';

/** A lag that neither a replaced projector nor an import causes. */
const MAX_LAG_SECONDS = 60;

/** The checks of the followers of the log. */
export const FOLLOWER_CHECKS: readonly Check[] = [
  {
    name: 'parked-events',
    stores: 'required',
    alerts: ['FuelEventsParked', 'FuelEventParked'],
    async find(facts) {
      const followers = await facts.followers();
      return {
        detail: eachOf(followers, ({ parked }) => `${parked}`),
        // The check `accounts` names the accounts that can't be read.
        problems: followers
          .filter(({ name, parked }) => parked > 0 && name !== ACCOUNTS_NAME)
          .map(parkedProblem),
      };
    },
  },
  {
    name: 'consumers',
    stores: 'required',
    isConsequence: true,
    async find(facts) {
      const [followers, { webhooks }] = await Promise.all([facts.followers(), facts.accounts()]);
      const idle = followers.filter((follower) => isIdle(follower, webhooks));
      return {
        detail: eachOf(followers, ({ holder }) => holder ?? 'nothing to do yet'),
        problems: idle.map(({ name }) => {
          const role = roleOf(name);
          const who = role === null ? 'no process is running' : `no running process has the role ${role}`;
          const words = role === null ? ['serve'] : ['serve', '--role', role];
          const text = `${who}, so nothing follows the log for ${name}`;
          return act(text, { id: `follower-${name}-idle`, words });
        }),
      };
    },
  },
  {
    name: 'lag',
    stores: 'required',
    follows: ['consumers'],
    isConsequence: true,
    alerts: ['FuelFollowerBehind', 'FuelFollowerSlow'],
    async find(facts) {
      const followers = await facts.followers();
      const late = followers.filter(({ lag_seconds }) => lag_seconds > MAX_LAG_SECONDS);
      return {
        detail: eachOf(followers, (each) => `${each.lag_events ?? 'many'} events, ${each.lag_seconds} s`),
        problems: late.map(({ name, lag_seconds }) =>
          act(`${name} is ${Math.round(lag_seconds)} s behind the events`, {
            id: `follower-${name}-lag`,
            words: ['projection', 'status'],
            do: 'run fuel projection status twice, a minute apart; if a position does not grow, look for errors in the log of its process',
          }),
        ),
      };
    },
  },
  {
    name: 'former-views',
    stores: 'required',
    async find(facts) {
      const left = await facts.formerViews();
      if (left.length === 0) return right('');
      const tables = left.map((number) => `transactions_${number}`).join(', ');
      const detail = `a former view has not been removed yet: ${tables}`;
      const remedy =
        'nothing: the projector removes it within a minute, or once a backup that reads it has ended';
      const told = { id: 'former-views', words: ['projection', 'status'], do: remedy };
      return { detail: '', problems: [notice(detail, told)] };
    },
  },
  {
    name: 'rebuild',
    madeBy: 'overview',
    async find(facts) {
      const problems = (await facts.followers()).flatMap(
        ({ name, unfinished_rebuild_percent: percent }): Problem[] => {
          if (percent === undefined) return [];
          const words = ['projection', 'rebuild', name];
          return [
            notice(`a rebuild of ${name} stopped at ${percent} %`, { id: `follower-${name}-rebuild`, words }),
          ];
        },
      );
      return { detail: '', problems };
    },
  },
];

/** True if nobody works on a follower that has, or had, work to do. */
function isIdle({ name, holder, lag_events, position }: FollowerStatus, webhooks: number): boolean {
  return (
    holder === null &&
    (lag_events !== 0 || position > 0 || (name !== VIEW_NAME && name !== ACCOUNTS_NAME && webhooks > 0))
  );
}

function eachOf(
  followers: readonly FollowerStatus[],
  describe: (follower: FollowerStatus) => string,
): string {
  return followers.map((each) => `${each.name}: ${describe(each)}`).join('; ');
}

function parkedProblem({ name, parked }: FollowerStatus): Problem {
  const of = name === VIEW_NAME ? [] : ['--follower', name];
  const words = ['projection', 'parked', ...of];
  const retry = ['projection parked retry --all', ...of].join(' ');
  const text =
    parked === 1
      ? `an event of ${name} is parked, and left out until it is retried`
      : `${parked} events of ${name} are parked, and left out until they are retried`;
  return act(text, {
    id: `follower-${name}-parked`,
    words,
    do: `fuel ${words.join(' ')} names each with its reason; repair the cause, then: fuel ${retry}`,
  });
}
