import { formatDateTime } from '../../domain/values/date-time.ts';
import { MAX_STUCK_MS, type StuckWebhook } from '../../push/health/stuck-webhooks.ts';
import type { LaneStreak } from '../../push/queue/delivery.ts';
import type { AccountFigures } from '../accounts/account-figures.ts';
import { counted, some } from '../answers/names.ts';
import { act, type Check, type Finding, notChecked, notice, type Problem, right, wrong } from './check.ts';
import { type Facts, MAX_FAILING } from './facts.ts';

/** More switched-off webhooks than this are one problem. */
const MAX_ONE_BY_ONE = 3;

/** The checks of accounts, their webhooks and their deliveries. */
export const ACCOUNT_CHECKS: readonly Check[] = [
  {
    name: 'contacts',
    madeBy: 'doctor',
    stores: 'required',
    async find(facts) {
      const { FUEL_OPERATOR_EMAIL: email } = facts.config;
      const { webhooks } = await facts.accounts();
      return checkContacts(webhooks, email ?? (await facts.withoutContact()));
    },
  },
  {
    name: 'webhooks',
    stores: 'required',
    alerts: ['FuelWebhookSwitchedOff'],
    async find(facts) {
      if (await isQueueDamaged(facts)) return notChecked(['data-directory']);
      const [of, failing, backlog] = await Promise.all([facts.accounts(), facts.failing(), facts.backlog()]);
      const counts = `${counted(of.webhooks, 'webhook')}, ${of.disabledWebhooks} switched off, ${failing.length} failing`;
      return {
        detail: `${counts}; deliveries: ${backlog?.pending ?? 0} pending, ${backlog?.held ?? 0} held`,
        problems: [...disabledProblems(of), ...failingProblems(failing)],
      };
    },
  },
  {
    name: 'overdue',
    stores: 'required',
    follows: ['consumers'],
    isConsequence: true,
    alerts: ['FuelDeliveriesLate', 'FuelReceiverSlow'],
    async find(facts) {
      if (await isQueueDamaged(facts)) return notChecked(['data-directory']);
      const [stuck, backlog] = await Promise.all([facts.stuck(), facts.backlog()]);
      if (stuck.length > 0) return { detail: '', problems: [stuckProblem(stuck)] };
      const dueAtMs = backlog?.nextDueAtMs;
      if (dueAtMs === undefined || facts.clock.now() - dueAtMs <= MAX_STUCK_MS)
        return right('no delivery has been due for five minutes');
      const text = `deliveries are waiting for their receivers; the oldest has been due since ${formatDateTime(dueAtMs)}`;
      const words = ['delivery', 'list', '--state', 'pending'];
      const href = '/deliveries?state=pending';
      return { detail: '', problems: [notice(text, { id: 'overdue', words, href })] };
    },
  },
];

/** A running process has the queue open, and could not if it were damaged. */
async function isQueueDamaged({ process, engines }: Facts): Promise<boolean> {
  return process === undefined && (await engines.state('queue')) === 'damaged';
}

/**
 * Finds webhooks that may fail and be switched off without anybody being told. `told` is the operator's address, or the
 * accounts with a webhook and no contact.
 */
export function checkContacts(webhooks: number, told: string | readonly number[]): Finding {
  const all = counted(webhooks, 'webhook');
  if (typeof told === 'string') return right(`${all}; notices about all of them go to FUEL_OPERATOR_EMAIL`);
  const ids = told.map(String);
  if (ids.length === 0) return right(`${all}; each account has a contact`);
  return wrong(
    `nobody is notified of failing webhooks of ${counted(ids.length, 'account')}: ${some(ids)}`,
    `fuel account contact ${ids[0]} --email ADDRESS, and so on for each account; or set FUEL_OPERATOR_EMAIL`,
  );
}

/** Switched-off webhooks are for the customers to repair. */
function disabledProblems({ disabledWebhooks, disabled }: AccountFigures): Problem[] {
  const [first] = disabled;
  if (first === undefined) return [];
  if (disabledWebhooks > MAX_ONE_BY_ONE) {
    const text = `${disabledWebhooks} webhooks are switched off: nothing is sent to ${some(disabled)}`;
    const words = ['webhook', 'show', first];
    return [notice(text, { id: 'disabled', words, href: '/webhooks?state=disabled' })];
  }
  return disabled.map((prefix) => {
    const text = `the webhook of key ${prefix} is switched off: nothing is sent to it`;
    const words = ['webhook', 'show', prefix];
    return notice(text, { id: `disabled-${prefix}`, words, href: `/keys/${prefix}` });
  });
}

/** Nothing silences this: neither attempts to other webhooks, nor others that wait. */
function stuckProblem(stuck: readonly StuckWebhook[]): Problem {
  const [{ prefix, sinceMs } = { prefix: '', sinceMs: 0 }] = stuck;
  const which = stuck.length === 1 ? 'key' : `${stuck.length} webhooks, the longest to key`;
  const others = stuck.length === 1 ? '' : ` (${some(stuck.map((each) => each.prefix))})`;
  const text = `nothing has been sent to ${which} ${prefix} since ${formatDateTime(sinceMs)}, although deliveries are due${others}`;
  const words = ['webhook', 'show', prefix];
  const remedy =
    'look for errors in the log of the processes with the role webhooks; fuel projection status names them';
  return act(text, { id: 'overdue', words, href: `/keys/${prefix}`, do: remedy });
}

function failingProblems(failing: readonly LaneStreak[]): Problem[] {
  const [worst] = failing;
  if (worst === undefined) return [];
  const { prefix, failedInARow, lastAnswers } = worst;
  const isOne = failing.length === 1;
  const many = failing.length >= MAX_FAILING ? `${MAX_FAILING} or more` : failing.length;
  const streak = `${failedInARow} in a row, the last answer ${lastAnswers[0] ?? 'unknown'}`;
  const text = isOne
    ? `deliveries to key ${prefix} fail: ${streak}`
    : `deliveries to ${many} webhooks fail; the longest streak is that of key ${prefix}: ${streak}`;
  const href = isOne ? `/keys/${prefix}` : '/webhooks?state=failing';
  return [notice(text, { id: 'failing', words: ['webhook', 'test', prefix], href })];
}
