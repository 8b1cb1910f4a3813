import type { Command } from 'commander';
import { type AuditLine, audit } from '../../audit/audit.ts';
import type { DomainEventType } from '../../domain/events.ts';
import { abortOnInterrupt, addCommand } from '../command/command.ts';
import { requireKnown } from '../command/known-names.ts';
import { dateTimeOption, eventTypesOption, idOption, requireRange } from '../command/options.ts';

interface AuditOptions {
  readonly account?: number;
  readonly transaction?: number;
  readonly type?: readonly DomainEventType[];
  readonly since?: number;
  readonly until?: number;
  readonly follow?: true;
}

export function addAuditCommand(program: Command): void {
  addCommand<AuditOptions>(program, {
    usage: 'audit',
    summary: 'list what happened, who did it and when, in the order of the log',
    example: 'fuel audit --account 7 --since 2026-09-01T00:00:00Z',
    options: (command) =>
      command
        .option('--account <id>', 'events of this account', idOption)
        .option('--transaction <id>', 'events of this transaction', idOption)
        .option('--type <types>', 'events of these types, such as KeyIssued,KeySwitchedOff', eventTypesOption)
        .option('--since <time>', 'recorded at or after this time', dateTimeOption)
        .option('--until <time>', 'recorded at or before this time', dateTimeOption)
        .option('--follow', 'continue with new events until interrupted'),
    async work({ engines, out }, _args, options) {
      requireRange(options);
      const filter = {
        accountId: options.account,
        transactionId: options.transaction,
        types: options.type,
        sinceMs: options.since,
        untilMs: options.until,
      };
      const lines = audit(engines.store(), filter, {
        follow: options.follow === true,
        signal: abortOnInterrupt(),
      });
      let some = options.follow === true;
      for await (const line of lines) {
        some = true;
        await out.line(line, asText(line));
      }
      // An account that was never opened is known as long as transactions name it.
      if (!some) await requireKnown(engines, options);
      return 0;
    },
  });
}

function asText(line: AuditLine): string {
  const who = `${line.actor ?? 'unknown'} (${line.command ?? 'unknown'})`;
  return `${line.at}  ${line.stream}@${line.revision}  ${line.type}  ${who}  ${JSON.stringify(line.data)}`;
}
