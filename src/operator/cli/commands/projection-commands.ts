import { randomUUID } from 'node:crypto';
import { silentLog } from '../../../base/log.ts';
import { assertViewFits } from '../../../event-store/store-identity.ts';
import type { RowDifference } from '../../../pull/view/build/compare.ts';
import { rebuildTransactions } from '../../../pull/view/build/rebuild.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { followerStatus, progressText } from '../../answers/follower.ts';
import { command, noun } from '../command/command.ts';
import { flag, usage } from '../command/options.ts';
import { addParkedCommands } from './parked-commands.ts';

const BY_OPERATOR = 'requested by the operator';
const WHY_NOT_SERVED = {
  interrupted: 'interrupted: nothing has changed for customers; run the same command again to continue',
  differs: 'records differ, so the former view is still served: --accept switches to the new one',
};

const status = command({
  usage: 'status',
  summary: 'show how far each follower of the log is, what it has parked and which process runs it',
  example: 'fuel projection status',
  async work({ engines, clock, out }) {
    const followers = await followerStatus({
      ...{ store: engines.store(), view: engines.view(), clock },
      ...{ subscriptions: engines.subscriptions(), coordination: engines.coordination() },
    });
    for (const status of followers) await out.row(status);
    if (followers.some(({ unfinished_rebuild_percent: percent }) => percent !== undefined))
      out.note(
        'a rebuild was interrupted: fuel projection rebuild continues it, with --accept if records differ',
      );
    await assertViewFits(await engines.view().checkpoint(), engines.store(), VIEW_NAME);
  },
});

const rebuild = command({
  usage: 'rebuild <view>',
  summary:
    'rebuild a view (transactions) from the events while the present one keeps serving, and switch to it if the records ' +
    'are the same; run it again to continue after an interruption',
  example: 'fuel projection rebuild transactions',
  args: [String],
  choices: { view: [VIEW_NAME] },
  options: { accept: flag('switch even if records differ') },
  changes: true,
  asksWhy: ({ accept }) => accept === true,
  async work({ engines, clock, author, out, signal }, [view], { accept = false, reason = BY_OPERATOR }) {
    if (view !== VIEW_NAME) throw usage(`there is no view ${view}: the only view is ${VIEW_NAME}`);
    const { outcome, position, comparison } = await rebuildTransactions({
      ...{ store: engines.store(), view: engines.view(), coordination: engines.coordination() },
      ...{ clock, log: silentLog, author, accept, reason, signal },
      holder: `rebuild-${randomUUID()}`,
      onProgress: (step) => out.progress(progressText(step)),
    });
    for (const difference of comparison?.named ?? []) out.note(differenceText(difference));
    const { records = null, differing: differences = null } = comparison ?? {};
    const served = outcome === 'switched';
    out.answer({ view: VIEW_NAME, position, served, records, differences });
    if (!served) out.note(WHY_NOT_SERVED[outcome]);
    return served ? 0 : 1;
  },
});

export const addProjectionCommands = noun({
  name: 'projection',
  summary: 'the views built from the events',
  example: 'fuel projection status',
  commands: [status, rebuild, addParkedCommands],
});

function differenceText({ transactionId, accountId, kind }: RowDifference): string {
  const what = {
    missing: 'only the new view shows it',
    surplus: 'only the served view shows it',
    differing: 'the two views show it differently',
  };
  return `transaction ${transactionId} of account ${accountId}: ${what[kind]}`;
}
