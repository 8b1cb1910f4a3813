import { webhookState } from '../../../accounts/account-state.ts';
import { accountTail } from '../figures/account-tail.ts';
import { gatesOf } from '../figures/gates.ts';
import { commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { notFound } from '../html/problems.ts';
import { facts } from '../html/table.ts';
import { links, state } from '../html/values.ts';
import { eventsTable, gatesTable } from './account.ts';
import type { PageContext } from './page-context.ts';

const MAX_ADDRESSES = 100;

/** A key as an operator may see it: no hash, no secret. */
export async function keyPage({ parts, name: prefix }: PageContext): Promise<Page> {
  const found = parts.directory.key(prefix);
  if (found === undefined) {
    return notFound(`Key ${prefix}`, 'No key has this prefix.', [
      { what: 'Every key', words: ['key', 'list'] },
    ]);
  }
  const { key, entry } = found;
  const { label, environment, active, allowList, rateLimit, driverMobile, webhook } = key;
  const events = await accountTail(parts.store, entry);
  const nowMs = parts.clock.now();
  const about = events.filter(({ data }) => data.prefix === prefix);
  const addresses = allowList.slice(0, MAX_ADDRESSES).join(', ');
  return {
    title: `Key ${prefix}`,
    main: html`<h1>Key <code>${line(prefix)}</code> ${state(active ? 'on' : 'off')}</h1>
      <section>
        ${facts([
          ['account', html`${links.account(entry.id)} ${line(entry.account?.name ?? 'unreadable')}`],
          ['label', line(label ?? 'none')],
          [
            'environment',
            environment === parts.environment
              ? environment
              : `${environment}: not known to this service, which serves ${parts.environment}`,
          ],
          ['check 1, addresses', allowList.length === 0 ? 'any address' : line(addresses, 2_000)],
          ['check 2, rate limit', `${rateLimit} requests in 60 s`],
          ['drivers’ mobile numbers', driverMobile ? 'sent' : 'left out'],
          [
            'webhook',
            webhook === null
              ? 'none'
              : html`${state(webhookState(webhook).state)} ${links.webhook(prefix)} ${line(webhook.url)}`,
          ],
        ])}
      </section>
      <section>${gatesTable(gatesOf({ account: entry.account, key, statusOf: parts.statusOf, nowMs, events }))}</section>
      <section>${eventsTable(about)}</section>
      ${commands([
        { what: 'The same on the command line', words: ['key', 'show', prefix] },
        active
          ? { what: 'Switch it off at once', words: ['key', 'off', prefix, '--reason', 'WHY', '--wait'] }
          : { what: 'Switch it on again', words: ['key', 'on', prefix] },
        {
          what: 'Change its addresses',
          words: ['key', 'allow', prefix, allowList.length === 0 ? '203.0.113.0/24' : allowList.join(',')],
        },
        { what: 'Change its rate limit', words: ['key', 'rate-limit', prefix, String(rateLimit)] },
        { what: 'Everything that happened to it', words: ['audit', '--key', prefix, '--newest'] },
      ])}`,
  };
}
