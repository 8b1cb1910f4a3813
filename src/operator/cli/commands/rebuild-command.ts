import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { FuelError } from '../../../base/errors.ts';
import { silentLog } from '../../../base/log.ts';
import type { RowDifference } from '../../../pull/view/build/compare.ts';
import { type RebuildResult, rebuildTransactions } from '../../../pull/view/build/rebuild.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { progressText } from '../../answers/follower.ts';
import { abortOnInterrupt, addCommand, type Session } from '../command/command.ts';
import { requireStore } from '../command/command-engines.ts';
import { progressLine } from '../command/progress.ts';

interface RebuildCommandOptions {
  readonly accept?: true;
}

export function addRebuildCommand(projection: Command): void {
  addCommand<RebuildCommandOptions>(projection, {
    usage: 'rebuild <view>',
    summary:
      'build a view (transactions) anew from the events, beside the one that is served; serve it if its records are ' +
      'the same. Interrupted, it continues with the next call',
    example: 'fuel projection rebuild transactions',
    options: (command) => command.option('--accept', 'serve the new view also where its records differ'),
    changes: true,
    work: rebuild,
  });
}

async function rebuild(
  { config, engines, clock, author, out }: Session,
  [view]: readonly string[],
  { accept }: RebuildCommandOptions,
): Promise<number> {
  if (view !== VIEW_NAME)
    throw new FuelError('USAGE', `there is no view ${view}: the views are ${VIEW_NAME}`);
  requireStore(config);
  await engines.bind();
  const progress = progressLine();
  const result = await rebuildTransactions({
    store: engines.store(),
    view: engines.view(),
    coordination: engines.coordination(),
    ...{ clock, log: silentLog, author, accept: accept === true },
    holder: `rebuild-${randomUUID()}`,
    signal: abortOnInterrupt(),
    reason: 'requested by the operator',
    onProgress: (step) => progress.show(progressText(step)),
  }).finally(() => progress.end());
  const { outcome, position, comparison } = result;
  for (const difference of comparison?.named ?? []) out.note(differenceText(difference));
  out.result(
    {
      view: VIEW_NAME,
      position,
      served: outcome === 'switched',
      records: comparison?.records ?? null,
      differences: comparison?.differing ?? null,
    },
    resultText(result),
  );
  return outcome === 'switched' ? 0 : 1;
}

function differenceText({ transactionId, accountId, kind }: RowDifference): string {
  const what = {
    missing: 'only the new view shows it',
    surplus: 'only the served view shows it',
    differing: 'the two views show it differently',
  };
  return `transaction ${transactionId} of account ${accountId}: ${what[kind]}`;
}

function resultText({ outcome, position, comparison }: RebuildResult): string {
  if (outcome === 'interrupted')
    return 'interrupted: the same command continues, and nothing has changed for customers';
  const compared = comparison && `${comparison.records} records compared, ${comparison.differing} differ`;
  if (outcome === 'differs')
    return `${compared}: the former view is still served; --accept serves the new one`;
  return `rebuilt ${VIEW_NAME} up to position ${position}${compared === undefined ? '' : `: ${compared}`}`;
}
