import { facts, state } from '../../answers/columns.ts';
import { KEY_COLUMNS, keyAnswer } from '../../answers/key.ts';
import { accountTail } from '../figures/tails.ts';
import { cmd } from '../html/commands.ts';
import { notFound, type Page, type PageContext } from '../html/layout.ts';
import { note } from '../html/parts.ts';
import { eventsTable } from './account.ts';
import { gatesTable } from './gates.ts';

/** A key as an operator may see it: no hash, no secret. */
export async function keyPage({ parts, name: prefix }: PageContext): Promise<Page> {
  const found = parts.directory.key(prefix);
  if (found === undefined)
    return notFound(`Key ${prefix}`, 'No key has this prefix.', { commands: [cmd('Every key')`key list`] });
  const { key, entry } = found;
  const { environment, active, allowList, rateLimit } = key;
  const isForeign = environment !== parts.environment;
  const events = await accountTail(parts.store, entry);
  const gates = { account: entry.account, key, nowMs: parts.clock.now(), events };
  return {
    title: `Key ${prefix}`,
    heading: [`Key ${prefix}`, state(active ? 'on' : 'off')],
    parts: [
      facts(KEY_COLUMNS, keyAnswer(entry.id, key)),
      isForeign ? note(`Not known to this service, which serves ${parts.environment}.`) : null,
      gatesTable(gates),
      eventsTable(events.filter(({ data }) => data.prefix === prefix)),
    ],
    commands: [
      cmd('The same on the command line')`key show ${prefix}`,
      active
        ? cmd('Switch it off at once')`key off ${prefix} --reason WHY --wait`
        : cmd('Switch it on again')`key on ${prefix}`,
      cmd('Change its addresses')`key allow ${prefix} ${allowList.join(',') || '203.0.113.0/24'}`,
      cmd('Change its rate limit')`key rate-limit ${prefix} ${rateLimit}`,
      cmd('Everything that happened to it')`audit --key ${prefix} --newest`,
    ],
  };
}
