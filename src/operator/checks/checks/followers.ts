import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { type FollowerStatus, isIdle, MAX_LAG_SECONDS, roleOf } from '../../../service/ops/followers.ts';
import { type Finding, right, wrong } from './check.ts';

const RETRY_VIEW =
  'transactions: fuel projection parked names each with its reason; then: fuel projection parked retry --all';
const RETRY_DELIVERIES =
  'deliveries: fuel projection parked --follower deliveries names each with its reason; repair the cause, then: ' +
  'fuel projection parked retry --all --follower deliveries';

const RETRY_NOTICES =
  'notices: fuel projection parked --follower notices names each with its reason; repair the cause, then: ' +
  'fuel projection parked retry --all --follower notices';

/** Events that nobody will handle before somebody acts. */
export function checkParked(followers: readonly FollowerStatus[]): Finding {
  const detail = followers.map(({ name, parked }) => `${name} ${parked}`).join(', ');
  const parked = (name: FollowerStatus['name']): boolean =>
    followers.some((follower) => follower.name === name && follower.parked > 0);
  const remedies = [
    ...(parked(VIEW_NAME) ? [RETRY_VIEW] : []),
    ...(parked('deliveries') ? [RETRY_DELIVERIES] : []),
    ...(parked('notices') ? [RETRY_NOTICES] : []),
  ];
  if (remedies.length > 0) return wrong(detail, remedies.join('; '));
  return right(detail);
}

/** Whether somebody works on each follower that has work to do. */
export function checkConsumers(
  followers: readonly FollowerStatus[],
  { webhooks }: { readonly webhooks: number },
): Finding {
  const idle = followers.filter((follower) => isIdle(follower, { webhooks }));
  if (idle.length === 0) {
    return right(followers.map(({ name, holder }) => `${name}: ${holder ?? 'nothing to do yet'}`).join('; '));
  }
  const roles = idle.map(({ name }) => roleOf(name));
  return wrong(
    `no live process works on ${idle.map(({ name }) => name).join(', ')}`,
    `fuel serve ${roles.map((role) => `--role ${role}`).join(' ')}, or fuel serve for all roles`,
  );
}

/** How far the followers are behind the log. */
export function checkLag(followers: readonly FollowerStatus[]): Finding {
  const detail = followers
    .map(({ name, lag_events, lag_seconds }) => `${name} ${lag_events ?? 'many'} events, ${lag_seconds} s`)
    .join('; ');
  if (followers.every(({ lag_seconds }) => lag_seconds <= MAX_LAG_SECONDS)) return right(detail);
  return wrong(
    `behind: ${detail}`,
    'fuel projection status, again after a minute: if a position does not grow, look for errors in the log of its process',
  );
}
