import type { VNode } from 'preact';
import { readKeys, type StoredKey } from '../../../accounts/rows/read-rows.ts';
import { readSummary } from '../../../accounts/rows/stored-account.ts';
import type { AccountKey } from '../../../domain/account.ts';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import type { ShownBacklog } from '../../../push/held.ts';
import { noAccess } from '../../answers/access.ts';
import { keyAnswer, usedKeyAnswer } from '../../answers/key.ts';
import {
  type LaneAttempt,
  MAX_COUNTED,
  paceShown,
  readPace,
  webhookAnswer,
  webhookState,
} from '../../answers/webhook.ts';
import { accountEventLine, accountTail } from '../../audit/newest-events.ts';
import { state } from '../../print/document.ts';
import { known } from '../figures/known.ts';
import { chart } from '../html/charts.ts';
import { type Command, cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { notFound, type Page, type PageContext } from '../html/layout.ts';
import { content, documentOf, href, listOf, note, number, type Part, problem } from '../html/parts.ts';

/** A key with its webhook, without hashes and secrets. */
export async function keyPage({ parts, name: prefix }: PageContext): Promise<Page> {
  const found = (await readKeys(parts.accounts, [prefix])).get(prefix);
  if (found === undefined)
    return notFound(`Key ${prefix}`, 'No key has this prefix.', { commands: [cmd('All keys')`key list`] });
  const { key, accountId } = found;
  const { clock } = parts;
  const now = (): number => clock.now();
  const account = await readSummary(parts.accounts, accountId);
  const [uses, lane, events] = await Promise.all([
    known(() => parts.engines.requests().lastUses([prefix]), now),
    known(() => readLane(parts, prefix), now),
    accountTail(parts.store, { id: accountId, revision: account?.revision ?? 0 }),
  ]);
  const refused = noAccess(account?.details, now());
  const { webhook_url, webhook_state, webhook_reason, webhook_since, ...ofKey } = usedKeyAnswer(
    keyAnswer(accountId, key),
    uses.value?.get(prefix),
  );
  const { state: name } = webhookState(key.webhook);
  const isFailing = name === 'active' && (lane.value?.health.failedInARow ?? 0) > 0;
  const logged = events.filter(({ data }) => data.prefix === prefix).map(accountEventLine);
  return {
    title: `Key ${prefix}`,
    heading: [
      ...[`Key ${prefix}`, state(key.active ? 'on' : 'off')],
      'webhook',
      state(isFailing ? 'failing' : name),
    ],
    parts: [
      documentOf(
        { ...ofKey, no_access: refused?.reason ?? null, answered: refused?.answered ?? null },
        'Key',
      ),
      'unknown' in uses ? note(`The last use of the key is unknown: ${uses.unknown}.`) : null,
      key.environment === parts.environment
        ? null
        : note(`This service does not know the key, because it serves ${parts.environment}.`),
      name === 'disabled'
        ? problem(content(listOf('Switched off', logged.filter(isDisabling).slice(0, 1))))
        : null,
      ...('unknown' in lane
        ? [note(`The webhook's deliveries are unknown: ${lane.unknown}.`)]
        : laneParts(found, lane.value, refused?.reason)),
      html`<p><a href=${href('/deliveries', { key: prefix })}>All deliveries to this key</a>, <a href=${href('/deliveries', { key: prefix, state: 'failed' })}>those that failed</a></p>`,
      listOf('Newest events', logged),
    ],
    commands: [...commandsOfWebhook(prefix, name), ...commandsOfKey(key)],
  };
}

const isDisabling = ({ event }: { readonly event: string }): boolean => event === 'WebhookDisabled';

type Lane = Awaited<ReturnType<typeof readLane>>;

async function readLane({ queue, accounts: rows, clock }: PageContext['parts'], prefix: string) {
  const parts = { queue, rows, nowMs: clock.now() };
  const [health, lane] = await Promise.all([queue.health(prefix), readPace(parts, prefix)]);
  return { health, ...lane };
}

function laneParts(
  { key, accountId }: StoredKey,
  { health, backlog, attempts, pace }: Lane,
  refused?: string,
): Part[] {
  const { prefix: _, account: __, ...webhook } = webhookAnswer(accountId, key, health);
  return [
    documentOf({ ...webhook, pace: paceShown(pace), backlog: backlogOf(backlog, refused) }, 'Webhook'),
    attemptCharts(attempts),
    listOf('Last answers by code', byAnswer(attempts)),
  ];
}

function backlogOf({ pending, held, nextDueAtMs }: ShownBacklog, refused: string | undefined) {
  const why = refused ?? 'the account has access again, and they are about to be sent';
  return {
    pending: number(pending, MAX_COUNTED),
    next_due: nextDueAtMs === undefined ? 'nothing' : formatDateTime(nextDueAtMs),
    held: held === 0 ? 0 : `${number(held, MAX_COUNTED)}: ${why}`,
  };
}

type Attempts = readonly LaneAttempt[];

function attemptCharts(attempts: Attempts): VNode {
  const note = `of the newest ${new Set(attempts.map(({ deliveryId }) => deliveryId)).size} deliveries that were attempted`;
  const answers = chart({
    id: 'chart-answers',
    title: 'Time to answer, ms',
    note: `each attempt ${note}; failed ones in red`,
    kind: 'dots',
    series: [{ name: 'ms', tone: 'good' }],
    points: attempts.map(({ startedAtMs, durationMs, ok, answer }) => ({
      atMs: startedAtMs,
      values: [Math.round(durationMs)],
      tone: ok ? 'good' : 'bad',
      answer,
    })),
  });
  return html`<div class="charts">${answers}
    <figure><figcaption><strong>Error rate over time</strong> <span class="note">${note}</span></figcaption>${content(listOf('Error rate over time', ratesOf(attempts)))}</figure>
  </div>`;
}

const PARTS = 10;
const MIN_IN_PART = 5;

/** Each row has the same number of attempts rather than the same time, because there may be long gaps. */
function ratesOf(attempts: Attempts) {
  const size = Math.max(MIN_IN_PART, Math.ceil(attempts.length / PARTS));
  const parts = Array.from({ length: Math.ceil(attempts.length / size) }, (_, at) =>
    attempts.slice(at * size, (at + 1) * size),
  );
  return parts.reverse().map((part) => ({
    from: formatDateTime(part[0]?.startedAtMs ?? 0),
    attempts: part.length,
    failed_percent: Math.round((part.filter(({ ok }) => !ok).length / part.length) * 100),
    mean_ms: meanMs(part),
  }));
}

function byAnswer(attempts: Attempts) {
  const groups = [...Map.groupBy(attempts, ({ answer }) => answer)];
  return groups
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([answer, of]) => ({
      answer,
      attempts: of.length,
      mean_ms: meanMs(of),
      last_at: formatDateTime(of.at(-1)?.startedAtMs ?? 0),
      delivery: of.at(-1)?.deliveryId ?? null,
    }));
}

function meanMs(attempts: Attempts): number {
  return Math.round(attempts.reduce((sum, { durationMs }) => sum + durationMs, 0) / attempts.length);
}

function commandsOfWebhook(prefix: string, name: string): Command[] {
  const test = cmd('Send one test now')`webhook test ${prefix}`;
  const failed = cmd('Send again everything that failed')`delivery redeliver --failed --key ${prefix}`;
  const show = cmd('The webhook on the command line')`webhook show ${prefix}`;
  if (name === 'none') return [cmd('Set the URL')`webhook set ${prefix} https://…`, show];
  if (name === 'disabled')
    return [cmd('Switch the webhook on again')`webhook enable ${prefix}`, failed, show];
  return [test, cmd('Switch the webhook off')`webhook disable ${prefix} --reason WHY`, failed, show];
}

function commandsOfKey({ prefix, active, allowList, rateLimit }: AccountKey): Command[] {
  return [
    cmd('The key on the command line')`key show ${prefix}`,
    active
      ? cmd('Switch the key off at once')`key off ${prefix} --reason WHY --wait`
      : cmd('Switch the key on again')`key on ${prefix}`,
    cmd('Change its allow-list')`key allow ${prefix} ${allowList.join(',') || '203.0.113.0/24'}`,
    cmd('Change its rate limit')`key rate-limit ${prefix} ${rateLimit}`,
    cmd('Requests with this key')`key requests ${prefix}`,
    cmd('Everything that happened to the key')`audit --key ${prefix} --newest`,
  ];
}
