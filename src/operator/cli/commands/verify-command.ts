import type { Command } from 'commander';
import { FuelError } from '../../../base/errors.ts';
import { describeDamage, RESTORE_EVENTS } from '../../../event-store/damage.ts';
import type { Damage } from '../../../event-store/event-store.ts';
import { assertViewFits } from '../../../event-store/store-identity.ts';
import { damagedEvents } from '../../../pull/view/damaged-events.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { readStartedLog } from '../../../push/delivery-log.ts';
import { projectionStatus } from '../../../service/ops/followers.ts';
import { requireRange } from '../../answers/filters.ts';
import { judgeInThreads, paysOff, type ThreadedJudges } from '../../serve/judge-in-threads.ts';
import { threadsOfCommand } from '../../serve/threads.ts';
import { readLog } from '../../verify/read-log.ts';
import { repairDeliveries } from '../../verify/repair-deliveries.ts';
import { repairView } from '../../verify/repair-view.ts';
import type { VerifyScope } from '../../verify/scope.ts';
import { type DeliveryAgreement, DeliveryJudge } from '../../verify/verify-deliveries.ts';
import { verifyDirectory } from '../../verify/verify-directory.ts';
import { ViewJudge } from '../../verify/verify-view.ts';
import { addCommand, type Session } from '../command/command.ts';
import { deliveryContext } from '../command/deliveries.ts';
import { requireKnown } from '../command/known-names.ts';
import { progressLine } from '../command/long-work.ts';
import * as option from '../command/options.ts';

const VERIFY = {
  account: option.id("this account's transactions"),
  ...option.sinceUntil('recorded'),
  explain: option.flag('name each transaction that a key is not owed, and why, on standard error'),
  repair: option.flag('repair what differs'),
  resendUnknown: option.flag('with --repair: rebuild a lost delivery log; receivers may get events twice'),
};
type VerifyOptions = option.Values<typeof VERIFY>;

export function addVerifyCommand(program: Command): void {
  addCommand(program, {
    usage: 'verify [what]',
    summary: 'check that the view and the deliveries (or one of them) are what the events call for',
    example: 'fuel verify deliveries --account 7 --since 2026-09-01T00:00:00Z --repair',
    options: VERIFY,
    changes: ({ repair }) => repair === true,
    work: verify,
  });
}

async function verify(session: Session, [what]: readonly string[], options: VerifyOptions): Promise<number> {
  if (what !== undefined && what !== 'view' && what !== 'deliveries') {
    throw option.usage(`${what} can't be verified: name view, deliveries, or nothing for both`);
  }
  if (options.resendUnknown && !options.repair) {
    throw option.usage('--resend-unknown goes with --repair');
  }
  if (options.resendUnknown && what === 'view') {
    throw option.usage('--resend-unknown rebuilds the delivery log: name deliveries, or nothing');
  }
  if (options.explain && what === 'view') {
    throw option.usage('--explain says why deliveries are not owed: name deliveries, or nothing');
  }
  requireRange(options);
  const { engines, out } = session;
  if (options.repair) await engines.bind();
  const scope = { ...range(options), damage: await namedDamage(session) };
  const view = what === 'deliveries' ? undefined : await viewJudge(session, scope);
  const deliveries = what === 'view' ? undefined : await deliveryJudge(session, options, scope);
  const judges = { view, deliveries: deliveries?.judge };
  await judgeLog(session, options, judges, { scope, logStartedAtMs: deliveries?.logStartedAtMs });
  const viewCounts = view && (await judgedView(session, view, options));
  const deliveryCounts = deliveries && (await judgedDeliveries(session, deliveries, options, scope));
  const directory = what === undefined ? await judgedDirectory(session, options) : undefined;
  const damaged = scope.damage.length + (viewCounts?.unreadable ?? 0);
  const document = {
    ...(directory?.differences && { directory }),
    ...(viewCounts && { view: { checked: viewCounts.checked, differences: viewCounts.differences } }),
    ...(deliveryCounts && { deliveries: deliveryCounts }),
    ...(damaged > 0 && { damaged }),
  };
  const judged =
    (directory?.checked ?? 0) +
    (viewCounts?.checked ?? 0) +
    (deliveryCounts === undefined ? 0 : deliveryCounts.owed + deliveryCounts.not_judged);
  if (judged === 0) await requireKnown(engines, options, { inLog: true });
  out.result(document, JSON.stringify(document, null, 2));
  if (damaged > 0) out.note(`what depends on them was neither judged nor repaired: ${RESTORE_EVENTS}`);
  const agrees =
    !directory?.differences &&
    !viewCounts?.differences &&
    !deliveryCounts?.missing &&
    !deliveryCounts?.surplus;
  return agrees && damaged === 0 ? 0 : 1;
}

interface JudgedScope extends VerifyScope {
  readonly damage: readonly Damage[];
}

/** What of the event store is damaged, each with a line. */
async function namedDamage({ engines, out }: Session): Promise<readonly Damage[]> {
  const damage = await damagedEvents(engines.store(), () => engines.view());
  for (const each of damage) out.note(`damaged: ${describeDamage(each)}`);
  return damage;
}

/** Printed only where it differs. Nothing to repair: a start replaces a stored directory that was changed. */
async function judgedDirectory({ engines, clock, out }: Session, { account }: VerifyOptions) {
  const parts = { store: engines.store(), stored: engines.directory(), clock };
  const { checked, differences } = await verifyDirectory(parts, account);
  for (const difference of differences) out.note(`directory: ${difference}`);
  return { checked, differences: differences.length };
}

/** In threads where that pays off. Explanations come in the order of the log. */
async function judgeLog(
  { engines, config }: Session,
  options: VerifyOptions,
  judges: ThreadedJudges,
  { scope, logStartedAtMs }: { readonly scope: JudgedScope; readonly logStartedAtMs: number | undefined },
): Promise<void> {
  const store = engines.store();
  const head = await store.head();
  const progress = progressLine();
  const onProgress = (events: number): void => progress.show(`${events} events`);
  let after = 0;
  if (engines.embedded.includes('store') && !options.explain && paysOff(head)) {
    const { damage, ...range } = scope;
    const host = threadsOfCommand(config);
    const data = { host, scope: range, damage, withView: judges.view !== undefined, logStartedAtMs };
    await judgeInThreads(judges, { ...data, head, onProgress });
    after = head;
  }
  const rest = [judges.view, judges.deliveries].filter((judge) => judge !== undefined);
  await readLog(rest, { store, after, onProgress: (events) => onProgress(after + events) });
  progress.end();
}

async function viewJudge({ engines }: Session, scope: JudgedScope): Promise<ViewJudge> {
  const store = engines.store();
  const view = engines.view();
  await assertViewFits(await view.checkpoint(), store, VIEW_NAME);
  return new ViewJudge({ store, view, ...scope });
}

async function judgedView(session: Session, judge: ViewJudge, options: VerifyOptions) {
  const { engines, clock, author, out } = session;
  const store = engines.store();
  const view = engines.view();
  const { checked, differences, unreadable, upTo } = await judge.finish();
  const { lag_events: behind } = await projectionStatus(store, view, engines.coordination(), clock);
  if (behind !== 0) {
    out.note(`view: ${behind ?? 'many'} events behind the log: judged up to position ${upTo}`);
  }
  for (const event of unreadable) out.note(`view: ${describeDamage(event)}, and the view shows what it was`);
  for (const { transactionId, kind } of differences) {
    out.note(`view: transaction ${transactionId} is ${kind}`);
  }
  const counts = { checked, unreadable: unreadable.length };
  if (!options.repair || differences.length === 0) return { ...counts, differences: differences.length };
  const remaining = await repairView(differences, { store, view, clock, author });
  out.note(`view: repaired ${differences.length - remaining.length} of ${differences.length}`);
  return { ...counts, differences: remaining.length };
}

/** The judge of the deliveries, and whether it judges by a log that replaces a lost one. */
interface DeliveryCheck {
  readonly judge: DeliveryJudge;
  readonly isLogLost: boolean;
  readonly logStartedAtMs: number;
  readonly again: () => DeliveryJudge;
}

async function deliveryJudge(
  session: Session,
  options: VerifyOptions,
  scope: JudgedScope,
): Promise<DeliveryCheck> {
  const { out } = session;
  const context = deliveryContext(session);
  const log = await context.queue.logId();
  const started = await readStartedLog(context.store);
  const lostLog = started !== undefined && started.id !== log.id ? started : undefined;
  if (lostLog !== undefined) refuseUnlessAskedFor(lostLog.id, options);
  const logStartedAtMs = lostLog?.firstStartedAtMs ?? log.startedAtMs;
  const judged = { ...context, ...scope, logStartedAtMs };
  const explain = (transactionId: number, key: string, reason: string): void =>
    out.note(`deliveries: transaction ${transactionId} is not owed to key ${key}: ${reason}`);
  return {
    judge: new DeliveryJudge({ ...judged, onNotOwed: options.explain ? explain : undefined }),
    isLogLost: lostLog !== undefined,
    logStartedAtMs,
    again: () => new DeliveryJudge(judged),
  };
}

async function judgedDeliveries(
  session: Session,
  { judge, isLogLost, logStartedAtMs, again }: DeliveryCheck,
  options: VerifyOptions,
  scope: JudgedScope,
) {
  const { author, out } = session;
  const context = deliveryContext(session);
  const found = await judge.finish();
  for (const { id, prefix, transactionId } of isLogLost ? [] : found.missing) {
    out.note(`deliveries: ${id} of transaction ${transactionId} to key ${prefix} is missing`);
  }
  for (const { id, prefix, transactionId } of found.surplus) {
    out.note(`deliveries: ${id} of transaction ${transactionId} to key ${prefix} is surplus`);
  }
  if (!options.repair) return agreementJson(found);
  const lost = { newLog: isLogLost };
  const { stored, sent } = await repairDeliveries(found.missing, lost, { ...context, author });
  if (isLogLost)
    out.note(`deliveries: the log was lost: receivers may see ${sent} deliveries for the second time`);
  if (found.missing.length === 0) return agreementJson(found);
  out.note(`deliveries: stored ${stored} that were missing`);
  const repaired = again();
  await judgeLog(session, options, { view: undefined, deliveries: repaired }, { scope, logStartedAtMs });
  return agreementJson(await repaired.finish());
}

function refuseUnlessAskedFor(lostLogId: string, options: VerifyOptions): void {
  if (options.resendUnknown === undefined) {
    throw new FuelError(
      'REFUSED',
      `the delivery log ${lostLogId} is gone, and with it what receivers have already: restore its backup, or ` +
        'run fuel verify deliveries --repair --resend-unknown, which may send them events for the second time',
    );
  }
  if ((options.account ?? options.since ?? options.until) !== undefined) {
    throw new FuelError('REFUSED', 'a lost delivery log is rebuilt as a whole: leave account and times out');
  }
}

function range({ account, since, until }: VerifyOptions) {
  return { accountId: account, sinceMs: since, untilMs: until };
}

function agreementJson({ owed, states, missing, surplus, notOwed, notJudged }: DeliveryAgreement) {
  const { delivered, pending, held, failed, withdrawn } = states;
  return {
    owed,
    delivered,
    pending,
    held,
    failed,
    withdrawn,
    missing: missing.length,
    surplus: surplus.length,
    not_judged: notJudged,
    not_owed: Object.fromEntries([...notOwed].sort(([, a], [, b]) => b - a)),
  };
}
