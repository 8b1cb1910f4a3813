import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../../src/base/clock.ts';
import { openEngines } from '../../src/engines/engines.ts';
import { waitUntilApplied } from '../../src/operator/serve/wait-applied.ts';
import type { DeliverySummary } from '../../src/push/queue/delivery.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { isVisible, type Model } from '../simulation/judge/model.ts';
import { listed } from '../support/deliveries/listed.ts';
import { recordText } from '../support/deliveries/push-service.ts';
import type { CommandResult } from '../support/service/command-result.ts';
import { fuel } from '../support/service/commands.ts';
import { judgeErasedBytes } from './erased-bytes.ts';
import { judgePush } from './judge-push.ts';
import type { Member } from './member.ts';
import { isKeyOff, isRedacted, readModel, recordOf } from './model.ts';
import type { Customer, Stage } from './stage.ts';
import { pageOfAll, type Workload } from './workload.ts';

const SETTLED_WITHIN_MS = 120_000;
const SETTLED_CHECK_MS = 250;
const MAX_NAMED = 5;
const REDELIVERED_AT_ONCE = 200;
/** How often failed deliveries are redelivered, since on a busy machine three answers in a row may be too late. */
const REDELIVERY_ROUNDS = 8;

/** The results of a run, besides its faults. */
export interface Figures {
  /** The time from the last kill until every process was ready. */
  readonly readyMs: number;
  readonly transactions: number;
  readonly deliveries: number;
  readonly redelivered: number;
}

/**
 * Compares everything with the events once nothing is killed any more: what each process shows, which keys it refuses,
 * and what arrived. Each difference becomes a fault of the stage.
 */
export async function judge(stage: Stage, workload: Workload): Promise<Figures> {
  stage.doing = 'waiting for every process';
  const readyMs = await stage.readyAfterKills();
  const engines = await openEngines(stage.operator.config, systemClock);
  try {
    await applied(engines);
    stage.doing = 'judging the pull channel';
    const { model, faults } = await readModel(engines);
    for (const fault of faults) stage.fault(fault);
    judgeLog(stage, workload, model);
    for (const member of stage.members) {
      for (const customer of stage.customers) await judgeProcess(stage, { member, customer, model });
    }
    stage.doing = 'waiting for the last deliveries';
    await settled(stage, model, engines);
    let redelivered = 0;
    for (let round = 0; round < REDELIVERY_ROUNDS; round++) {
      redelivered += await redeliverFailed(stage, model, engines);
      await settled(stage, model, engines);
    }
    stage.doing = 'judging the push channel';
    const deliveries = await engines.queue().get(await listed(engines.queue()));
    const { model: atEnd } = await readModel(engines); // with the redeliveries
    judgePush(stage, { workload, model: atEnd, deliveries });
    await judgeParked(stage, engines);
    await judgeByCommand(stage);
    judgeErasedBytes(stage, [...workload.erased(), ...workload.redacted]);
    const counts = { transactions: model.transactions.size, deliveries: deliveries.length };
    return { readyMs, ...counts, redelivered };
  } finally {
    await engines.close();
  }
}

/** Checks that the log has exactly what was acknowledged. */
function judgeLog(stage: Stage, { known, redacted }: Workload, { transactions }: Model): void {
  for (const [id, { state, line }] of known) {
    const logged = transactions.get(id);
    const stateInLog = logged === undefined ? 'erased' : isVisible(logged) ? 'visible' : 'hidden';
    if (state !== stateInLog)
      stage.fault(`transaction ${id} is ${stateInLog} in the log, and was left ${state}`);
    if (logged === undefined) continue;
    if (redacted.has(id) && !isRedacted(logged)) stage.fault(`transaction ${id} still names its driver`);
    const driver = isRedacted(logged) ? { driver: { id: 77, name: 'REDACTED', mobile_number: null } } : {};
    if (!isDeepStrictEqual(logged.data, { ...line.data, ...driver }))
      stage.fault(`transaction ${id} is in the log with other data`);
  }
  for (const id of transactions.keys()) {
    if (!known.has(id)) stage.fault(`transaction ${id} is in the log, and nobody recorded it`);
  }
}

/** Checks that each process shows every page of an account as the events require, and refuses keys that are off. */
async function judgeProcess(
  stage: Stage,
  {
    member,
    customer,
    model,
  }: { readonly member: Member; readonly customer: Customer; readonly model: Model },
): Promise<void> {
  const { account, key } = customer;
  const where = `${member.name}, account ${account}`;
  if (isKeyOff(model, account)) {
    const answer = await member.ask(pageOfAll(), key);
    if (answer?.status !== 401) stage.fault(`${where}: a key that is off is answered ${answer?.status}`);
    return;
  }
  const expected = model.visible(account);
  const shown = await pulled(member, key);
  if (typeof shown === 'string') return stage.fault(`${where}: ${shown}`);
  const wrong = expected.filter((transaction, index) => shown[index] !== recordOf(transaction));
  if (wrong.length === 0 && shown.length === expected.length) return;
  const named = wrong.slice(0, MAX_NAMED).map((transaction) => {
    const index = expected.indexOf(transaction);
    return `${recordOf(transaction)} against ${shown[index]}`;
  });
  stage.fault(
    `${where} shows ${shown.length} of ${expected.length}, ${wrong.length} wrong: ${named.join('; ')}`,
  );
}

/** Pulls every record, page by page, without `expires_at`. Returns the error if there is one. */
async function pulled(member: Member, key: string): Promise<string[] | string> {
  const records: string[] = [];
  const page = pageOfAll();
  for (let cursor = ''; ; ) {
    const answer = await member.ask(`${page}${cursor}`, key);
    if (answer?.status !== 200) return `a page is answered ${answer?.status} ${answer?.text}`;
    const { data, pagination } = answer.body;
    for (const { id } of data) {
      records.push(recordText(answer.text, id).replace(/"expires_at":"[^"]*"/, '"expires_at":""'));
    }
    if (!pagination.has_more) return records;
    cursor = `&cursor=${encodeURIComponent(pagination.next_cursor)}`;
  }
}

async function applied(engines: Engines): Promise<void> {
  const position = await engines.store().head();
  const coordination = engines.coordination();
  for (let round = 1; ; round++) {
    try {
      await waitUntilApplied({ coordination, view: engines.view(), accounts: engines.accounts(), position });
      return;
    } catch (error) {
      if (round === 6) throw error;
    }
  }
}

/** Waits until no delivery or outcome is under way any more. */
async function settled(stage: Stage, model: Model, engines: Engines): Promise<void> {
  const deadlineMs = Date.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const deliveries = await listed(engines.queue());
    const logged = new Set(deliveries.map(({ transactionId }) => transactionId));
    const missing = [...model.transactions.values()].filter(
      ({ id, owedTo }) => owedTo.size > 0 && !logged.has(id),
    );
    const open = deliveries.filter(({ state }) => state === 'pending');
    if (missing.length + open.length === 0) return;
    if (Date.now() > deadlineMs) {
      stage.fault(
        `after ${SETTLED_WITHIN_MS} ms ${open.length} deliveries are open, ${missing.length} missing`,
      );
      return;
    }
    await sleep(SETTLED_CHECK_MS);
  }
}

/** Redelivers, as an operator does, the deliveries that ended while their key or webhook was off. */
async function redeliverFailed(stage: Stage, model: Model, engines: Engines): Promise<number> {
  const isDue = ({ state, accountId, transactionId }: DeliverySummary): boolean => {
    const transaction = model.transactions.get(transactionId);
    const isShown = transaction !== undefined && isVisible(transaction);
    return state === 'failed' && isShown && !isKeyOff(model, accountId);
  };
  const ids = (await listed(engines.queue())).filter(isDue).map(({ id }) => id);
  for (let at = 0; at < ids.length; at += REDELIVERED_AT_ONCE) {
    await done(stage, ['delivery', 'redeliver', ...ids.slice(at, at + REDELIVERED_AT_ONCE), '--json']);
  }
  return ids.length;
}

async function judgeParked(stage: Stage, engines: Engines): Promise<void> {
  for (const { stream, reason } of await engines.view().parked())
    stage.fault(`${stream} is parked: ${reason}`);
  for (const { event, reason } of await engines.subscriptions().parked('deliveries'))
    stage.fault(`${event.stream} is parked in the group deliveries: ${reason}`);
}

/** Checks that the service's own verification agrees too. */
async function judgeByCommand(stage: Stage): Promise<void> {
  const { json, stderr } = await done(stage, ['verify', '--json']).catch((error) => {
    stage.fault(String(error));
    return { json: undefined, stderr: '' };
  });
  if (json === undefined) return;
  const { view, deliveries } = json;
  const isClean = view.differences + deliveries.missing + deliveries.surplus + deliveries.not_judged === 0;
  if (!isClean) stage.fault(`fuel verify: ${JSON.stringify(json)}\n${stderr}`);
}

async function done({ env, dataDir }: Stage, args: readonly string[]): Promise<CommandResult> {
  const result = await fuel(args, { env, dataDir });
  if (result.code === 0) return result;
  throw new Error(`fuel ${args.join(' ')} ended with ${result.code}: ${result.stdout} ${result.stderr}`);
}
