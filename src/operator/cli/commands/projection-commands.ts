import { randomUUID } from 'node:crypto';
import { Argument } from '@commander-js/extra-typings';
import { silentLog } from '../../../base/log.ts';
import { recordOperations } from '../../../event-store/operations.ts';
import { assertViewFits } from '../../../event-store/store-identity.ts';
import { rebuildTransactions } from '../../../pull/view/build/rebuild.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { ACCOUNTS_NAME } from '../../../service/ops/followers.ts';
import { verifyAccounts } from '../../accounts/verify-accounts.ts';
import { followerStatus, progressText } from '../../answers/follower.ts';
import { command, noun, type Session } from '../command/command.ts';
import { currentAccounts } from '../command/known-names.ts';
import { addParkedCommands } from './parked-commands.ts';

const BY_OPERATOR = 'requested by the operator';
const INTERRUPTED = 'Interrupted. Nothing has changed for customers; run the same command again to continue';

const status = command({
  name: 'status',
  summary: 'show how far each follower of the log is, what it has parked and which process runs it',
  example: 'fuel projection status',
  async work({ engines, clock, out }) {
    const followers = await followerStatus({
      store: engines.store(),
      view: engines.view(),
      clock,
      subscriptions: engines.subscriptions(),
      coordination: engines.coordination(),
      accounts: engines.accounts(),
    });
    for (const status of followers) await out.row(status);
    if (followers.some(({ unfinished_rebuild_percent: percent }) => percent !== undefined))
      out.note('A rebuild was interrupted. Continue it with `fuel projection rebuild transactions`');
    await assertViewFits(await engines.view().checkpoint(), engines.store(), VIEW_NAME);
  },
});

const rebuild = command({
  name: 'rebuild',
  summary:
    'rebuild a view from the events while customers are served: transactions as a new view, which then replaces the present one, ' +
    'and accounts in place; run it again to continue after an interruption',
  example: 'fuel projection rebuild transactions',
  syntax: (it) => it.addArgument(new Argument('<view>', 'the view').choices([ACCOUNTS_NAME, VIEW_NAME])),
  changes: true,
  asksWhy: () => false,
  work: (session, [view], { reason = BY_OPERATOR }) =>
    view === ACCOUNTS_NAME ? rebuildAccounts(session, reason) : rebuildView(session, reason),
});

async function rebuildView(
  { engines, clock, author, out, signal }: Session,
  reason: string,
): Promise<number> {
  const { outcome, position } = await rebuildTransactions({
    store: engines.store(),
    view: engines.view(),
    coordination: engines.coordination(),
    clock,
    log: silentLog,
    author,
    reason,
    signal,
    holder: `rebuild-${randomUUID()}`,
    onProgress: (step) => out.progress(progressText(step)),
  });
  const served = outcome === 'switched';
  out.answer({ view: VIEW_NAME, position, served });
  if (!served) out.note(INTERRUPTED);
  return served ? 0 : 1;
}

/** Makes each row that is not what the events call for. An account's rows are right by themselves, so no switch is needed. */
async function rebuildAccounts(session: Session, reason: string): Promise<number> {
  const { engines, clock, author, out, signal } = session;
  const store = engines.store();
  const { checked, differences, remaining } = await verifyAccounts({
    store,
    tables: await currentAccounts(session),
    clock,
    author,
    repair: true,
    signal,
    onProgress: (count) => out.progress(`${count} accounts`),
  });
  const data = { view: ACCOUNTS_NAME, reason };
  await recordOperations(store, [{ type: 'ViewRebuilt', data }], { author, clock });
  const repaired = differences.length - remaining.length;
  out.answer({ view: ACCOUNTS_NAME, accounts: checked, repaired, differences: remaining.length });
  for (const { accountId } of remaining) out.note(`Account ${accountId} still differs from its events`);
  return remaining.length === 0 ? 0 : 1;
}

export const addProjectionCommands = noun({
  name: 'projection',
  summary: 'show and rebuild the views that are built from the events',
  example: 'fuel projection status',
  commands: [status, rebuild, addParkedCommands],
});
