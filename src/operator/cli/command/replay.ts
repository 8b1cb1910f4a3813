import { PROCESS_MAX_AGE_MS } from '../../../base/coordination/process-report.ts';
import { type GroupName, roleOf } from '../../../service/ops/followers.ts';
import type { Session } from './command.ts';

/**
 * Has the consumers of a group handle again what it has parked, so that it keeps nothing that is done with. Where there
 * are none they do so when they start: EventStoreDB loses what was replayed to nobody when it restarts.
 */
export async function replayWhereConsumed(engines: Session['engines'], group: GroupName): Promise<void> {
  const live = await engines.coordination().live(PROCESS_MAX_AGE_MS);
  if (!live.some(({ roles }) => roles.includes(roleOf(group)))) return;
  const subscriptions = engines.subscriptions();
  if ((await subscriptions.status(group)) !== undefined) await subscriptions.replayParked(group);
}
