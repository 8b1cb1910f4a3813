import { resolve } from 'node:path';
import type { Command } from 'commander';
import { type ApplyCounts, applyAccounts } from '../../accounts/desired/apply-accounts.ts';
import type { DomainEvent } from '../../domain/events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { abortOnInterrupt, addCommand, type Session } from '../command/command.ts';
import { hasStore } from '../command/command-engines.ts';
import { openInput } from '../command/input-file.ts';
import { progressLine } from '../command/progress.ts';

interface ApplyOptions {
  readonly dryRun?: true;
}

export function addApplyCommand(account: Command): void {
  addCommand<ApplyOptions>(account, {
    usage: 'apply <file>',
    summary:
      'make accounts what a file of JSON lines says, or standard input (-): one account a line; what is left out stays',
    example: 'fuel account apply customers.jsonl --dry-run',
    options: (command) =>
      command.option(
        '--dry-run',
        'record nothing; show what would be recorded (with --json on standard error)',
      ),
    changes: ({ dryRun }) => dryRun !== true,
    work: apply,
  });
}

async function apply(
  session: Session,
  [file = '']: readonly string[],
  options: ApplyOptions,
): Promise<number> {
  const { clock, author, out } = session;
  const dryRun = options.dryRun === true;
  const interrupted = abortOnInterrupt();
  const input = await openInput(file, interrupted);
  const progress = progressLine();
  const show = async (events: readonly DomainEvent[]): Promise<void> => {
    progress.end();
    for (const event of events) {
      // With --json there is one document on standard output: the counts.
      if (out.json) out.note(eventText(event));
      else await out.line(undefined, eventText(event));
    }
  };
  const counts = await applyAccounts({
    store: dryRun ? supposedStore(session) : session.engines.store(),
    input,
    author,
    clock,
    dryRun,
    ...(dryRun && { onApplied: show }),
    onRefused: (lineNumber, reason) => {
      progress.end();
      out.note(`line ${lineNumber}: ${reason}`);
    },
    onProgress: (soFar) => progress.show(text(soFar, dryRun)),
    signal: interrupted,
  });
  progress.end();
  out.result(counts, text(counts, dryRun));
  if (interrupted.aborted) out.note('interrupted: apply the same file again to continue');
  return counts.refused > 0 || interrupted.aborted ? 1 : 0;
}

/** What a dry run reads: where there is no store yet everything is new, and none is made. */
function supposedStore({ config, engines, out }: Session): Pick<EventStore, 'readStreams' | 'append'> {
  if (hasStore(config)) return engines.store();
  out.note(`there is no store in ${resolve(config.FUEL_DATA_DIR)} yet: everything is new`);
  return {
    readStreams: async (streams) => streams.map(() => []),
    append: () => Promise.reject(new Error('a dry run records nothing')),
  };
}

function eventText({ type, data }: DomainEvent): string {
  const { account_id: id, ...rest } = data as Readonly<Record<string, unknown>>;
  return `account ${id}  ${type}  ${JSON.stringify(rest)}`;
}

function text({ applied, unchanged, refused }: ApplyCounts, dryRun: boolean): string {
  return `${dryRun ? 'would apply' : 'applied'} ${applied}, unchanged ${unchanged}, refused ${refused}`;
}
