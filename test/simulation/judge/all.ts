import type { Simulation } from '../simulation.ts';
import { judgeDeliveries, judgeRepeats } from './deliveries.ts';

/** A fault of many deliveries is told by a few. */
const MAX_OF_DELIVERIES = 5;

/** What contradicts the model, while nothing is under way but attempts; each in a line. */
export function* judgeAll(simulation: Simulation): Generator<string, void> {
  const { model, stores, witness, receivers } = simulation;
  const judged = simulation.judged();
  yield* [...judgeDeliveries(judged), ...judgeRepeats(judged)].slice(0, MAX_OF_DELIVERIES);
  for (const { keys } of model.accounts.values())
    for (const key of keys.values())
      yield* witness.streaks.judge(key, stores.queue.healthOf(key.prefix).failedInARow);
  yield* witness.mailFaults();
  for (const each of receivers.forbidden) yield `a forbidden address was called: ${each}`;
  yield* judgeStores(simulation);
}

/** Everything has caught up, nothing is parked, and what was erased is nowhere. */
function* judgeStores({ model, stores }: Simulation): Generator<string, void> {
  const { log, groups } = stores;
  const { served } = stores.view;
  for (const { stream, reason } of served?.parked.values() ?? [])
    yield `the view has parked an event of ${stream}: ${reason}`;
  for (const id of model.erased.keys()) {
    if (served?.rows.get(id)?.shown) yield `the view shows transaction ${id}, which was erased`;
    if (log.events.some((event) => event?.stream === `transaction-${id}`))
      yield `the log has transaction ${id}, which was erased`;
  }
  const at = served?.checkpoint.position ?? 0;
  if (at < log.head) yield `the view is at ${at}, and the log's end is ${log.head}`;
  for (const [name, group] of groups.groups) {
    for (const { event, reason } of groups.parked(name))
      yield `${name} has parked event ${event.position} of ${event.stream}: ${reason}`;
    const open = [...group.messages.values()].filter(({ state }) => state !== 'parked').length;
    if (open > 0 || group.position < log.head)
      yield `the group ${name} is at ${group.position} of ${log.head}, ${open} open`;
  }
}
