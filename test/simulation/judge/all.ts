import type { Simulation } from '../simulation.ts';
import { judgeDeliveries, judgeRequests } from './deliveries.ts';
import { judgeLiveness } from './liveness.ts';
import { judgePace } from './pace.ts';

/** How many deliveries with the same fault are listed. */
const MAX_OF_DELIVERIES = 5;

/** Yields the contradictions to the model, one a line, while nothing but attempts is under way. */
export function* judgeAll(simulation: Simulation): Generator<string, void> {
  const { model, stores, witness, receivers } = simulation;
  const judged = simulation.judged();
  yield* [...judgeDeliveries(judged), ...judgeRequests(judged)].slice(0, MAX_OF_DELIVERIES);
  const { processesChangedAtMs } = simulation;
  yield* judgeLiveness({ ...judged, processesChangedAtMs }).take(MAX_OF_DELIVERIES);
  const ofPace = { receivers: [...receivers.byHost.values()], hosts: witness.hosts, processesChangedAtMs };
  yield* judgePace({ ...judged, ...ofPace }).take(MAX_OF_DELIVERIES);
  for (const { keys } of model.accounts.values())
    for (const key of keys.values()) yield* witness.streaks.judge(key, stores.queue.failedInARow(key.prefix));
  yield* witness.mailFaults();
  for (const each of receivers.forbidden) yield `a forbidden address was called: ${each}`;
  yield* simulation.accounts.judge();
  yield* judgeStores(simulation);
}

/** Checks that everything has caught up, nothing is parked, and erased data is nowhere. */
function* judgeStores({ model, stores }: Simulation): Generator<string, void> {
  const { log, groups } = stores;
  const [views] = stores.tables.rowsIn('transactions', 'transactions_views');
  const { generation = 0 } = JSON.parse(String(views?.served ?? '{}')) as { readonly generation?: number };
  const served = (table: string) =>
    stores.tables.rowsIn(`transactions-${generation}`, `transactions_${table}${generation}`);
  for (const { stream, reason } of served('parked_'))
    yield `the view has parked an event of ${stream}: ${reason}`;
  const shown = new Set(served('').flatMap(({ id, record }) => (record === null ? [] : [id])));
  const streams = new Set(log.after(0).map(({ stream }) => stream));
  for (const id of model.erased.keys()) {
    if (shown.has(id)) yield `the view shows transaction ${id}, which was erased`;
    if (streams.has(`transaction-${id}`)) yield `the log has transaction ${id}, which was erased`;
  }
  const at = Number(served('progress_')[0]?.position ?? 0);
  if (at < log.head) yield `the view is at ${at}, and the log's end is ${log.head}`;
  for (const [name, group] of groups.groups) {
    for (const { event, reason } of groups.parked(name))
      yield `${name} has parked event ${event.position} of ${event.stream}: ${reason}`;
    const open = [...group.messages.values()].filter(({ state }) => state !== 'parked').length;
    if (open > 0 || group.position < log.head)
      yield `the group ${name} is at ${group.position} of ${log.head}, ${open} open`;
  }
}
