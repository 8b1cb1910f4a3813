import { randomUUID } from 'node:crypto';
import { Argument } from '@commander-js/extra-typings';
import { silentLog } from '../../../base/log.ts';
import { assertViewFits } from '../../../event-store/store-identity.ts';
import { rebuildTransactions } from '../../../pull/view/build/rebuild.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { followerStatus, progressText } from '../../answers/follower.ts';
import { command, noun } from '../command/command.ts';
import { addParkedCommands } from './parked-commands.ts';

const BY_OPERATOR = 'requested by the operator';
const INTERRUPTED = 'Interrupted. Nothing has changed for customers; run the same command again to continue';

const status = command({
  name: 'status',
  summary: 'show how far each follower of the log is, what it has parked and which process runs it',
  example: 'fuel projection status',
  async work({ engines, clock, out }) {
    const followers = await followerStatus({
      ...{ store: engines.store(), view: engines.view(), clock },
      ...{ subscriptions: engines.subscriptions(), coordination: engines.coordination() },
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
    'rebuild a view (transactions) from the events while the present one keeps serving, and then serve the new one; run it ' +
    'again to continue after an interruption',
  example: 'fuel projection rebuild transactions',
  syntax: (it) => it.addArgument(new Argument('<view>', 'the view').choices([VIEW_NAME])),
  changes: true,
  asksWhy: () => false,
  async work({ engines, clock, author, out, signal }, _, { reason = BY_OPERATOR }) {
    const { outcome, position } = await rebuildTransactions({
      ...{ store: engines.store(), view: engines.view(), coordination: engines.coordination() },
      ...{ clock, log: silentLog, author, reason, signal },
      holder: `rebuild-${randomUUID()}`,
      onProgress: (step) => out.progress(progressText(step)),
    });
    const served = outcome === 'switched';
    out.answer({ view: VIEW_NAME, position, served });
    if (!served) out.note(INTERRUPTED);
    return served ? 0 : 1;
  },
});

export const addProjectionCommands = noun({
  name: 'projection',
  summary: 'show and rebuild the views that are built from the events',
  example: 'fuel projection status',
  commands: [status, rebuild, addParkedCommands],
});
