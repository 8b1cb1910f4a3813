import { readAccount, type StoredAccount } from '../../../accounts/rows/stored-account.ts';
import { DAY_MS, formatDateTime } from '../../../domain/values/date-time.ts';
import { accountAnswer, accountLine, accountState } from '../../answers/account.ts';
import { accountEventLine, accountTail } from '../../audit/newest-events.ts';
import { type Command, cmd } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import { notFound, type Page, type PageContext } from '../html/layout.ts';
import { documentOf, listOf, problem } from '../html/parts.ts';

const MAX_EVENTS = 50;

export async function accountPage({ parts, name }: PageContext): Promise<Page> {
  const id = Number(name);
  const entry =
    /^\d{1,16}$/.test(name) && Number.isSafeInteger(id) ? await readAccount(parts.accounts, id) : undefined;
  if (entry === undefined) {
    const commands = [cmd('All accounts')`account list`];
    return notFound(`Account ${name}`, 'No account with this id was opened.', { commands });
  }
  const events = await accountTail(parts.store, entry);
  const nowMs = parts.clock.now();
  const shown = documentOf(accountAnswer(entry, nowMs), 'Account', { id: 'account' });
  return {
    title: `Account ${id}`,
    heading: [`Account ${id} ${line(entry.account?.name ?? '')}`, accountState(accountLine(entry, nowMs))],
    parts: [
      entry.account === undefined ? problem(shown) : shown,
      html`<p><a href=${`/deliveries?account=${id}`}>Its deliveries</a>, <a href=${`/deliveries?account=${id}&state=failed`}>those that failed</a></p>`,
      listOf('Newest events', events.slice(0, MAX_EVENTS).map(accountEventLine)),
    ],
    commands: [
      cmd('The same on the command line')`account show ${id}`,
      ...changesOf(id, entry.account, nowMs),
      cmd('The transactions that its customers see, newest first')`transaction list --account ${id}`,
      cmd('Everything that happened to the account')`audit --account ${id} --newest`,
    ],
  };
}

function changesOf(id: number, account: StoredAccount['account'], nowMs: number): Command[] {
  if (account?.closed) return [cmd('Reopen the account')`account reopen ${id} --reason WHY`];
  const profile = [...(account?.profiles.keys() ?? [])].at(-1) ?? 'NAME';
  const today = formatDateTime(nowMs - (nowMs % DAY_MS));
  return [
    account?.integration.enabled === false
      ? cmd('Switch the integration on')`account integration ${id} on`
      : cmd('Switch the integration off')`account integration ${id} off --reason WHY`,
    cmd('Renew or set a charging profile')`account profile ${id} --profile ${profile} --from ${today}`,
    cmd('Issue a key')`key issue ${id} --label LABEL`,
    cmd('Close the account')`account close ${id} --reason WHY`,
  ];
}
