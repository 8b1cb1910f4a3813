import { FuelError } from '../../../../base/errors.ts';
import { authorOf } from '../../../../event-store/codec.ts';
import type { Engines } from '../../../../service/engines/engines.ts';
import { readId, requireRange } from '../../../answers/filters.ts';
import { readPrefix } from '../../../answers/names.ts';
import { dataText, type Personal } from '../../../answers/timeline.ts';
import { type AuditLine, audit } from '../../../audit/audit.ts';
import { command } from '../../command/command.ts';
import { requireKnown } from '../../command/known-names.ts';
import * as option from '../../command/options.ts';
import { addAuditCheckCommand, addAuditExportCommand } from './audit-export-commands.ts';
import { addAuditVerifyCommand } from './audit-verify-command.ts';

export const addAuditCommand = command(
  {
    name: 'audit',
    summary: 'list what happened, who did it and when, in the order of the log',
    example: 'fuel audit --key a1b2c3d4e5 --newest --limit 20',
    lists: { what: 'events' },
    syntax: (it) =>
      it
        .option('--account <id>', 'only events of this account', readId)
        .option('--transaction <id>', 'only events of this transaction', readId)
        .option('--key <prefix>', 'only events about this key and its webhook', readPrefix)
        .option('--actor <name>', 'only events of this actor', option.readText)
        .option(
          '--type <types>',
          'only events of these types, such as KeyIssued,KeySwitchedOff',
          option.readEventTypes,
        )
        .addOption(option.since('recorded'))
        .addOption(option.until('recorded'))
        .option('--newest', 'newest first')
        .option('--limit <n>', 'at most this many', option.readCount)
        .option('--personal', option.PERSONAL)
        .option('--follow', 'continue with new events, until interrupted or --until'),
    async work(session, _args, options) {
      const { engines, clock, out, signal } = session;
      requireRange(options);
      const { follow = false, newest = false, limit = Infinity, key, personal = false } = options;
      if (follow && newest) throw option.usage('--newest reads backwards, so it does not go with --follow');
      if (key !== undefined) await requireKnown(session, { key, account: options.account });
      const filter = {
        accountId: options.account,
        transactionId: options.transaction,
        prefix: key,
        actor: options.actor,
        types: options.type,
        sinceMs: options.since,
        untilMs: options.until,
      };
      let printed = 0;
      for await (const line of audit(engines.store(), filter, { follow, newest, signal, clock })) {
        await out.line(line, asText(line, { personal }));
        printed += 1;
        if (printed >= limit) break;
      }
      if (printed > 0 || follow) return;
      signal.throwIfAborted();
      if (options.actor !== undefined) await requireActor(engines, options.actor, signal);
      await requireKnown(session, options);
    },
  },
  [addAuditVerifyCommand, addAuditExportCommand, addAuditCheckCommand],
);

/** Throws `REFUSED` for an actor of no event: a misspelt name must not look like somebody who did nothing. */
async function requireActor(engines: Engines, actor: string, signal: AbortSignal): Promise<void> {
  for await (const _ of audit(engines.store(), { actor }, { follow: false, newest: true, signal })) return;
  signal.throwIfAborted();
  throw new FuelError('REFUSED', `No event has the actor ${actor}. See \`fuel audit\``);
}

function asText(line: AuditLine, how: Personal): string {
  const who = `${authorOf({ metadata: line })} (${line.command ?? 'unknown'})`;
  const cause = line.correlation_id === null ? '' : `  ${line.correlation_id}`;
  const data = dataText(line.data, how);
  return `${line.at}  ${line.stream}@${line.revision}  ${line.type}  ${who}${cause}  ${data}`;
}
