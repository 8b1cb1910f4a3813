import { randomUUID } from 'node:crypto';
import { generateKey } from '../../src/accounts/key-text.ts';
import type { MasterKeys } from '../../src/accounts/master-key.ts';
import { sampleAccount } from '../../src/customers/sample/sample-directory.ts';
import { decideAll } from '../../src/domain/account-commands.ts';
import { type AccountEvent, accountStream } from '../../src/domain/account-events.ts';
import { formatDateTime } from '../../src/domain/values/date-time.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { commandsFor } from './provision.ts';

const ACCOUNTS_A_COMMIT = 1_000;
const AUTHOR = { actor: 'bench', command: 'bench', correlationId: randomUUID() };

/** Records accounts, each with groups, corporates, a key and a webhook. Returns the prefix of the last key. */
export async function recordAccounts(
  store: Pick<EventStore, 'append'>,
  masterKeys: MasterKeys,
  accounts: number,
): Promise<string> {
  let lastPrefix = '';
  for (let from = 1; from <= accounts; from += ACCOUNTS_A_COMMIT) {
    const count = Math.min(ACCOUNTS_A_COMMIT, accounts + 1 - from);
    const appends = Array.from({ length: count }, (_none, index) => {
      const account = sampleAccount(from + index);
      const { key: _, ...stored } = generateKey('staging');
      lastPrefix = stored.prefix;
      const atMs = Date.now();
      const decided = decideAll(commandsFor(account, stored), undefined, atMs);
      if (decided.kind === 'refused') throw new Error(decided.reason);
      const events: AccountEvent[] = [...decided.events];
      const secret = masterKeys.encryptSecret({ prefix: stored.prefix, secret: 's'.repeat(43) });
      const place = { account_id: account.id, prefix: stored.prefix };
      const url = `https://receiver-${account.id}.example.com/fuel`;
      events.push({ type: 'WebhookUrlSet', data: { ...place, url, set_at: formatDateTime(atMs), secret } });
      const recorded = events.map((event) => newEvent(event, AUTHOR, atMs));
      return { stream: accountStream(account.id), expected: 'none' as const, events: recorded };
    });
    await store.append(appends);
  }
  return lastPrefix;
}
