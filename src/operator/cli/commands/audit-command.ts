import type { Command } from 'commander';
import { FuelError } from '../../../base/errors.ts';
import type { DomainEventType } from '../../../domain/events.ts';
import type { Engines } from '../../../service/engines/engines.ts';
import { requireRange } from '../../answers/filters.ts';
import { type AuditLine, audit } from '../../audit/audit.ts';
import { abortOnInterrupt, addCommand } from '../command/command.ts';
import { requireKnown } from '../command/known-names.ts';
import { countOption, dateTimeOption, eventTypesOption, idOption, nameOption } from '../command/options.ts';

interface AuditOptions {
  readonly account?: number;
  readonly transaction?: number;
  readonly key?: string;
  readonly actor?: string;
  readonly type?: readonly DomainEventType[];
  readonly since?: number;
  readonly until?: number;
  readonly newest?: true;
  readonly limit?: number;
  readonly follow?: true;
}

export function addAuditCommand(program: Command): void {
  addCommand<AuditOptions>(program, {
    usage: 'audit',
    summary: 'list what happened, who did it and when, in the order of the log',
    example: 'fuel audit --key a1b2c3d4e5 --newest --limit 20',
    options: (command) =>
      command
        .option('--account <id>', 'events of this account', idOption)
        .option('--transaction <id>', 'events of this transaction', idOption)
        .option('--key <prefix>', 'events about this key and its webhook')
        .option('--actor <name>', 'what this actor did', nameOption)
        .option('--type <types>', 'events of these types, such as KeyIssued,KeySwitchedOff', eventTypesOption)
        .option('--since <time>', 'recorded at or after this time', dateTimeOption)
        .option('--until <time>', 'recorded at or before this time', dateTimeOption)
        .option('--newest', 'newest first')
        .option('--limit <n>', 'at most this many', countOption)
        .option('--follow', 'continue with new events until interrupted or --until'),
    async work({ engines, clock, out }, _args, options) {
      requireRange(options);
      const { follow = false, newest = false, limit = Infinity, key } = options;
      if (follow && newest) throw new FuelError('USAGE', '--newest reads backwards: it can not --follow');
      if (key !== undefined) await requireKnown(engines, { key, account: options.account });
      const filter = {
        accountId: options.account,
        transactionId: options.transaction,
        prefix: key,
        actor: options.actor,
        types: options.type,
        sinceMs: options.since,
        untilMs: options.until,
      };
      const signal = abortOnInterrupt();
      let count = 0;
      for await (const line of audit(engines.store(), filter, { follow, newest, signal, clock })) {
        await out.line(line, asText(line));
        count += 1;
        if (count >= limit) break;
      }
      if (count > 0 || follow) return 0;
      if (options.actor !== undefined) await requireActor(engines, options.actor, signal);
      await requireKnown(engines, options, { inLog: true });
      return 0;
    },
  });
}

/** Throws `REFUSED` for an actor of no event at all: a misspelt name must not look as if nothing had been done. */
async function requireActor(engines: Engines, actor: string, signal: AbortSignal): Promise<void> {
  for await (const _ of audit(engines.store(), { actor }, { follow: false, newest: true, signal })) return;
  if (!signal.aborted) throw new FuelError('REFUSED', `no event was recorded by ${actor}`);
}

function asText(line: AuditLine): string {
  const who = `${line.actor ?? 'unknown'} (${line.command ?? 'unknown'})`;
  const as = line.os_user === null || line.os_user === line.actor ? '' : ` as user ${line.os_user}`;
  const cause = line.correlation_id === null ? '' : `  ${line.correlation_id}`;
  const data = JSON.stringify(line.data);
  return `${line.at}  ${line.stream}@${line.revision}  ${line.type}  ${who}${as}${cause}  ${data}`;
}
