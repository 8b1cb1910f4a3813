import type { Command } from 'commander';
import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import { repairDeliveries, withdrawnAmong } from '../../agreement/repair-deliveries.ts';
import type { DeliveryAgreement } from '../../agreement/verify-deliveries.ts';
import { verifyDeliveries } from '../../agreement/verify-deliveries.ts';
import { repairView, verifyView } from '../../agreement/verify-view.ts';
import { readStartedLog } from '../../deliveries/delivery-log.ts';
import { OPERATIONS_STREAM } from '../../domain/operations-events.ts';
import { FuelError } from '../../errors.ts';
import { newEvent } from '../../event-store/new-event.ts';
import { assertViewFits } from '../../event-store/store-identity.ts';
import { projectionStatus } from '../../ops/followers.ts';
import { VIEW_NAME } from '../../transactions/view/projector.ts';
import { addCommand, type Session } from '../command/command.ts';
import { deliveryContext } from '../command/deliveries.ts';
import { requireKnown } from '../command/known-names.ts';
import { dateTimeOption, idOption, requireRange } from '../command/options.ts';
import { progressLine } from '../command/progress.ts';

interface VerifyOptions {
  readonly account?: number;
  readonly since?: number;
  readonly until?: number;
  readonly repair?: true;
  readonly resendUnknown?: true;
}

export function addVerifyCommand(program: Command): void {
  addCommand<VerifyOptions>(program, {
    usage: 'verify [what]',
    summary: 'check that the view and the deliveries (or one of them) are what the events call for',
    example: 'fuel verify deliveries --account 7 --since 2026-09-01T00:00:00Z --repair',
    options: (command) =>
      command
        .option('--account <id>', "this account's transactions", idOption)
        .option('--since <time>', 'recorded at or after this time', dateTimeOption)
        .option('--until <time>', 'recorded at or before this time', dateTimeOption)
        .option('--repair', 'repair what differs')
        .option(
          '--resend-unknown',
          'with --repair: rebuild a lost delivery log; receivers may get events twice',
        ),
    changes: ({ repair }) => repair === true,
    work: verify,
  });
}

async function verify(session: Session, [what]: readonly string[], options: VerifyOptions): Promise<number> {
  if (what !== undefined && what !== 'view' && what !== 'deliveries') {
    throw new FuelError('USAGE', `${what} can't be verified: name view, deliveries, or nothing for both`);
  }
  if (options.resendUnknown && !options.repair) {
    throw new FuelError('USAGE', '--resend-unknown goes with --repair');
  }
  requireRange(options);
  if (options.repair) await session.engines.bind();
  const view = what === 'deliveries' ? undefined : await verifyTheView(session, options);
  const deliveries = what === 'view' ? undefined : await verifyTheDeliveries(session, options);
  const document = { ...(view && { view }), ...(deliveries && { deliveries }) };
  const judged =
    (view?.checked ?? 0) + (deliveries === undefined ? 0 : deliveries.owed + deliveries.not_judged);
  // An account that was never opened is known as long as transactions name it.
  if (judged === 0) await requireKnown(session.engines, options);
  session.out.result(document, JSON.stringify(document, null, 2));
  const agrees = !view?.differences && !deliveries?.missing && !deliveries?.surplus;
  return agrees ? 0 : 1;
}

async function verifyTheView(session: Session, options: VerifyOptions) {
  const { engines, clock, author, out } = session;
  const store = engines.store();
  const view = engines.view();
  const progress = progressLine();
  await assertViewFits(await view.checkpoint(), store, VIEW_NAME);
  const accounts = (await loadDirectory(store)).accounts();
  const found = await verifyView({
    store,
    view,
    accountIds: [...accounts].map(({ id }) => id),
    ...range(options),
    onProgress: (checked) => progress.show(`view: ${checked} transactions`),
  });
  progress.end();
  const { lag_events: behind } = await projectionStatus(store, view, engines.coordination(), clock);
  if (behind !== 0) {
    out.note(`view: ${behind ?? 'many'} events behind the log: judged up to position ${found.upTo}`);
  }
  for (const { transactionId, kind } of found.differences) {
    out.note(`view: transaction ${transactionId} is ${kind}`);
  }
  if (options.repair === undefined || found.differences.length === 0) {
    return { checked: found.checked, differences: found.differences.length };
  }
  const remaining = await repairView(found.differences, { store, view });
  const repaired = found.differences.length - remaining.length;
  const event = { type: 'AgreementRepaired', data: { what: 'view', repaired } } as const;
  await store.append([
    { stream: OPERATIONS_STREAM, expected: 'any', events: [newEvent(event, author, clock.now())] },
  ]);
  out.note(`view: repaired ${repaired} of ${found.differences.length}`);
  return { checked: found.checked, differences: remaining.length };
}

async function verifyTheDeliveries(session: Session, options: VerifyOptions) {
  const { author, out } = session;
  const context = deliveryContext(session);
  const { store, queue } = context;
  const log = await queue.logId();
  const started = await readStartedLog(store);
  const lostLog = started !== undefined && started.id !== log.id ? started : undefined;
  if (lostLog !== undefined) refuseUnlessAskedFor(lostLog.id, options);
  const progress = progressLine();
  const verification = {
    ...context,
    logStartedAtMs: lostLog?.firstStartedAtMs ?? log.startedAtMs,
    ...range(options),
    onProgress: (seen: number) => progress.show(`deliveries: ${seen} transactions`),
  };
  const found = await verifyDeliveries(verification);
  progress.end();
  for (const { id, prefix, transactionId } of lostLog === undefined ? found.missing : []) {
    out.note(`deliveries: ${id} of transaction ${transactionId} to key ${prefix} is missing`);
  }
  for (const { id, prefix, transactionId } of found.surplus) {
    out.note(`deliveries: ${id} of transaction ${transactionId} to key ${prefix} is surplus`);
  }
  if (options.repair === undefined) return agreementJson(found);
  if (lostLog !== undefined) {
    const withdrawn = await withdrawnAmong(found.missing, store);
    const sent = found.missing.filter(({ transactionId }) => !withdrawn.has(transactionId));
    out.note(`deliveries: the log was lost: receivers may see ${sent.length} deliveries for the second time`);
  }
  await repairDeliveries(found.missing, { newLog: lostLog !== undefined }, { ...context, author });
  if (found.missing.length === 0) return agreementJson(found);
  out.note(`deliveries: stored ${found.missing.length} that were missing`);
  return agreementJson(await verifyDeliveries(verification));
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

function agreementJson({ owed, states, missing, surplus, notJudged }: DeliveryAgreement) {
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
  };
}
