import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { DomainEvent } from '../../../domain/events.ts';
import type { EventStore } from '../../../event-store/event-store.ts';
import { applyAccounts } from '../../apply/apply-accounts.ts';
import { addCommand, type Session } from '../command/command.ts';
import { hasStore } from '../command/command-engines.ts';
import { openInput } from '../command/input-file.ts';
import { longWork } from '../command/long-work.ts';

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

function apply(session: Session, [file = '']: readonly string[], options: ApplyOptions): Promise<number> {
  const { clock, author, out } = session;
  const dryRun = options.dryRun === true;
  return longWork(
    out,
    { again: 'apply the same file again', names: dryRun ? { applied: 'would apply' } : {} },
    async ({ onRefused, endLine, ...parts }) => {
      const input = await openInput(file, parts.signal);
      const show = async (events: readonly DomainEvent[]): Promise<void> => {
        endLine();
        for (const event of events) {
          // With --json there is one document on standard output: the counts.
          if (out.json) out.note(eventText(event));
          else await out.line(undefined, eventText(event));
        }
      };
      return applyAccounts({
        store: dryRun ? supposedStore(session) : session.engines.store(),
        input,
        author,
        clock,
        dryRun,
        ...(dryRun && { onApplied: show }),
        onRefused: (lineNumber, reason) => onRefused(`line ${lineNumber}`, reason),
        ...parts,
      });
    },
  );
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
