import type { VNode } from 'preact';
import { webhookLine } from '../../answers/webhook.ts';
import { MAX_FAILING } from '../../checks/facts.ts';
import { cmd } from '../html/commands.ts';
import { html } from '../html/html.ts';
import { malformed, type Page, type PageContext, unavailable } from '../html/layout.ts';
import { href, listOf, next, number, orUnknown, type Shown, show } from '../html/parts.ts';

const ON_A_PAGE = 50;
const STATES = ['disabled', 'failing', 'active'] as const;

/** All webhooks: those that are switched off, those that fail, then the others by account. */
export async function webhooksPage({ parts, figures, query }: PageContext): Promise<Page> {
  const wanted = STATES.find((state) => state === query.state);
  if (query.state && wanted === undefined) {
    const fault = `${query.state} is not a state of webhooks: they are ${STATES.join(', ')}`;
    return malformed('Webhooks', [fault]);
  }
  const [failing, lists] = await Promise.all([figures.failing(), figures.lists()]);
  if ('unknown' in lists) return unavailable(lists.unknown);
  const streaks = new Map((failing.value ?? []).map((streak) => [streak.prefix, streak]));
  const { disabled, webhooks } = lists.value;
  const active = webhooks.filter(({ prefix, disabledAtMs }) => disabledAtMs === null && !streaks.has(prefix));
  const byState = { disabled, failing: [...streaks.values()], active };
  const listed = (wanted ? byState[wanted] : Object.values(byState).flat()).map(({ prefix }) => prefix);
  const from = listed.indexOf(query.after ?? '') + 1; // from the first, if that one is no longer listed
  const shown = listed.slice(from, from + ON_A_PAGE);
  const after = listed.length > from + ON_A_PAGE ? shown.at(-1) : undefined;
  const lines = shown.flatMap((prefix) => {
    const found = parts.directory.key(prefix);
    return found === undefined ? [] : [webhookLine(found, streaks.get(prefix))];
  });
  const count = (text: string, of: readonly unknown[]): string => `${text} ${number(of.length)}`;
  return {
    title: 'Webhooks',
    parts: [
      filters(wanted, {
        all: count('all', webhooks),
        disabled: count('switched off', disabled),
        failing: ['failing', orUnknown(failing, (of) => number(of.length, MAX_FAILING))],
        active: 'the others',
      }),
      listOf('Webhooks of active keys, worst first', lines),
      next('/webhooks', { state: wanted, after }, `Next ${ON_A_PAGE}`),
    ],
    commands: [
      cmd('All keys with their webhooks')`key list`,
      cmd('Accounts with the worst state of their webhooks')`account list`,
    ],
  };
}

function filters(wanted: string | undefined, texts: Readonly<Record<string, Shown>>): VNode {
  const links = Object.entries(texts).map(([name, text], at) => {
    const state = name === 'all' ? undefined : name;
    const to = href('/webhooks', { state });
    return html`${at === 0 ? '' : ' · '}<a href=${to} aria-current=${wanted === state ? 'true' : undefined}>${show(text)}</a>`;
  });
  return html`<p>${links}</p>`;
}
