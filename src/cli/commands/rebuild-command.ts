import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { progressText } from '../../answers/follower.ts';
import { FuelError } from '../../errors.ts';
import { silentLog } from '../../log.ts';
import { runRebuildWorkers } from '../../service/rebuild/rebuild-workers.ts';
import { applySegments } from '../../transactions/view/build/apply-segments.ts';
import type { RowDifference } from '../../transactions/view/build/compare.ts';
import {
  isBuildLed,
  type RebuildResult,
  rebuildTransactions,
} from '../../transactions/view/build/rebuild.ts';
import { VIEW_NAME } from '../../transactions/view/projector.ts';
import { abortOnInterrupt, addCommand, type Session } from '../command/command.ts';
import { requireStore } from '../command/command-engines.ts';
import { countOption } from '../command/options.ts';
import { progressLine } from '../command/progress.ts';

const MAX_WORKERS = 64;

interface RebuildCommandOptions {
  readonly accept?: true;
  readonly workers?: number;
  readonly join?: true;
}

export function addRebuildCommand(projection: Command): void {
  addCommand<RebuildCommandOptions>(projection, {
    usage: 'rebuild <view>',
    summary:
      'build a view (transactions) anew from the events, beside the one that is served; serve it if its records are ' +
      'the same. Interrupted, it continues with the next call',
    example: 'fuel projection rebuild transactions --workers 4',
    options: (command) =>
      command
        .option('--accept', 'serve the new view also where its records differ')
        .option('--workers <n>', 'threads that apply segments of the log (default: 1)', countOption)
        .option('--join', 'help a rebuild that is under way in another process'),
    changes: true,
    work: rebuild,
  });
}

async function rebuild(
  session: Session,
  [view]: readonly string[],
  options: RebuildCommandOptions,
): Promise<number> {
  if (view !== VIEW_NAME)
    throw new FuelError('USAGE', `there is no view ${view}: the views are ${VIEW_NAME}`);
  const { workers = 1, join, accept } = options;
  if (workers > MAX_WORKERS) throw new FuelError('USAGE', `--workers takes at most ${MAX_WORKERS}`);
  requireStore(session.config);
  if (join && accept) throw new FuelError('USAGE', '--accept is for the command that leads the rebuild');
  await session.engines.bind();
  return join ? joinRebuild(session, workers) : leadRebuild(session, { workers, accept: accept === true });
}

async function leadRebuild(
  session: Session,
  { workers, accept }: { readonly workers: number; readonly accept: boolean },
): Promise<number> {
  const { config, author, out } = session;
  const parts = partsOf(session);
  const progress = progressLine();
  const result = await rebuildTransactions({
    ...parts,
    author,
    reason: 'requested by the operator',
    accept,
    ...(workers > 1 && {
      helpers: (signal) => runRebuildWorkers(workers, { config, holder: parts.holder, signal }),
    }),
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

async function joinRebuild(session: Session, workers: number): Promise<number> {
  const { config, engines, clock, out } = session;
  const build = await engines.view().builds.current();
  if (build === undefined) {
    throw new FuelError(
      'REFUSED',
      'no rebuild is under way: fuel projection rebuild transactions starts one',
    );
  }
  const parts = partsOf(session);
  if (workers > 1) await runRebuildWorkers(workers, { config, holder: parts.holder, signal: parts.signal });
  else await applySegments({ ...parts, build });
  if (parts.signal.aborted) {
    out.note('interrupted: others can take the parts that are left');
    return 1;
  }
  const isServed = (await engines.view().builds.current()) === undefined;
  const isLed = isServed || (await isBuildLed(parts.coordination, clock));
  const rest = isLed
    ? 'the command that leads the rebuild does the rest'
    : 'no command leads the rebuild now, fuel projection rebuild transactions does the rest';
  out.result({ view: VIEW_NAME, joined: true }, `every part of the log is applied: ${rest}`);
  return isLed ? 0 : 1;
}

function partsOf({ engines, clock }: Session) {
  return {
    store: engines.store(),
    view: engines.view(),
    coordination: engines.coordination(),
    clock,
    log: silentLog,
    holder: `rebuild-${randomUUID()}`,
    signal: abortOnInterrupt(),
  };
}

function differenceText({ transactionId, accountId, kind }: RowDifference): string {
  const what = {
    added: 'only the new view shows it',
    removed: 'only the served view shows it',
    changed: 'the two views show it differently',
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
