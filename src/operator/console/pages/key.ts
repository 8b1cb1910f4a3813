import { facts } from '../../answers/columns.ts';
import { KEY_COLUMNS, keyAnswer } from '../../answers/key.ts';
import { accountTail } from '../figures/tails.ts';
import { cmd, commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { notFound } from '../html/problems.ts';
import { sectionOf } from '../html/table.ts';
import { state } from '../html/values.ts';
import { eventsTable, gatesTable } from './account.ts';

/** A key as an operator may see it: no hash, no secret. */
export async function keyPage({ parts, name: prefix }: PageContext): Promise<Page> {
  const found = parts.directory.key(prefix);
  if (found === undefined) {
    return notFound(`Key ${prefix}`, 'No key has this prefix.', [cmd('Every key')`key list`]);
  }
  const { key, entry } = found;
  const { environment, active, allowList, rateLimit } = key;
  const events = await accountTail(parts.store, entry);
  const about = events.filter(({ data }) => data.prefix === prefix);
  const gates = { account: entry.account, key, statusOf: parts.statusOf, nowMs: parts.clock.now(), events };
  return {
    title: `Key ${prefix}`,
    main: html`<h1>Key <code>${line(prefix)}</code> ${state(active ? 'on' : 'off')}</h1>
      <section>
        ${sectionOf(facts(KEY_COLUMNS, keyAnswer(entry.id, key)))}
        ${environment === parts.environment ? null : html`<p class="note">Not known to this service, which serves ${parts.environment}.</p>`}
      </section>
      <section>${gatesTable(gates)}</section>
      <section>${eventsTable(about)}</section>
      ${commands([
        cmd('The same on the command line')`key show ${prefix}`,
        active
          ? cmd('Switch it off at once')`key off ${prefix} --reason WHY --wait`
          : cmd('Switch it on again')`key on ${prefix}`,
        cmd(
          'Change its addresses',
        )`key allow ${prefix} ${allowList.length === 0 ? '203.0.113.0/24' : allowList.join(',')}`,
        cmd('Change its rate limit')`key rate-limit ${prefix} ${rateLimit}`,
        cmd('Everything that happened to it')`audit --key ${prefix} --newest`,
      ])}`,
  };
}
