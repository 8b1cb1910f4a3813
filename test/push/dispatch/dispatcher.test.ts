import { expect, onTestFinished, test } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import { keyIssued, onKey, PREFIX, profileSet, webhookSet } from '../../support/accounts/account-samples.ts';
import { settle } from '../../support/deliveries/fake-scheduler.ts';
import { failedWith, OK, PushMachine, READY, TIMEOUT } from '../../support/deliveries/push.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { confirmedData } from '../../support/transactions/records.ts';

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;
const id = (transactionId: number, prefix = PREFIX) => deliveryId(prefix, transactionId);
const integration = (type: 'IntegrationEnabled' | 'IntegrationDisabled'): AccountEvent => ({
  type,
  data: { account_id: 7 },
});

async function machine(...more: readonly AccountEvent[]): Promise<PushMachine> {
  const opened = new PushMachine(temporaryFolder());
  onTestFinished(() => opened.close());
  await opened.account(...READY, ...more);
  opened.start();
  await settle();
  return opened;
}

const stateOf = async (m: PushMachine, transactionId: number, prefix = PREFIX) => {
  const found = await m.queue.find(id(transactionId, prefix));
  return found && { state: found.state, reason: found.reason, attempts: found.attempts.length };
};

test('a delivery is attempted as soon as it is stored, and recorded as delivered', async () => {
  const m = await machine();
  await m.push(501);
  expect(m.sender.sent).toMatchObject([{ id: id(501), url: 'https://example.com/hook', attempt: 1 }]);
  await m.scheduler.advance(20);
  expect(await stateOf(m, 501)).toEqual({ state: 'delivered', reason: null, attempts: 1 });
});

test('a failed attempt is retried after 30 s and 150 s, exactly when due, three times in all', async () => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: failedWith(503), afterMs: 10 });
  await m.push(501);
  const startMs = m.scheduler.now();
  await m.scheduler.advance(200 * SECOND_MS);
  expect(m.sender.sent.map(({ atMs, attempt }) => [atMs - startMs, attempt])).toEqual([
    [0, 1],
    [30_010, 2],
    [180_020, 3],
  ]);
  expect(await stateOf(m, 501)).toMatchObject({
    state: 'failed',
    attempts: 3,
    reason: expect.stringMatching(/503/),
  });
  await m.scheduler.advance(DAY_MS);
  expect(m.sender.sent).toHaveLength(3);
});

test('while nothing is due, the only timer is the check of held accounts once a minute', async () => {
  const m = await machine();
  await m.push(501);
  await m.scheduler.advance(100);
  expect(m.scheduler.pending).toHaveLength(1);
  expect(m.scheduler.pending[0]).toBeGreaterThan(50 * SECOND_MS);
});

test('an attempt goes to the URL of that moment, also where it changed between two attempts', async () => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: failedWith(500), afterMs: 10 });
  await m.push(501);
  await m.account(webhookSet({ url: 'https://example.com/new', secret: null }));
  await m.scheduler.advance(31 * SECOND_MS);
  expect(m.sender.sent.map(({ url }) => url)).toEqual([
    'https://example.com/hook',
    'https://example.com/new',
  ]);
});

test('without access deliveries are held, and continue with their remaining attempts when access returns', async () => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: failedWith(500), afterMs: 10 });
  await m.push(501);
  await m.account(integration('IntegrationDisabled'));
  await m.push(502);
  await m.scheduler.advance(31 * SECOND_MS);
  expect(m.sender.sent).toHaveLength(1);
  expect((await stateOf(m, 501))?.state).toBe('held');
  expect((await stateOf(m, 502))?.state).toBe('held');
  m.sender.answer = () => ({ outcome: OK, afterMs: 10 });
  await m.account(integration('IntegrationEnabled'));
  await m.scheduler.advance(100);
  expect(m.sender.sent.slice(1).map(({ id: sent, attempt }) => [sent, attempt])).toEqual([
    [id(501), 2],
    [id(502), 1],
  ]);
  expect((await stateOf(m, 501))?.state).toBe('delivered');
});

test('deliveries stop in the millisecond in which a charging profile ends and continue when the next starts', async () => {
  const m = await machine();
  const startMs = m.scheduler.now();
  const at = (ms: number) => new Date(startMs + ms).toISOString();
  await m.account(profileSet('2026-01-01T00:00:00.000Z', at(1_000)), profileSet(at(45_000), null, 'next'));
  await m.scheduler.advance(999);
  await m.push(501);
  await m.scheduler.advance(1);
  await m.push(502);
  await m.scheduler.advance(43_999);
  expect(m.sender.sent.map(({ atMs }) => atMs - startMs)).toEqual([999]);
  await m.scheduler.advance(1);
  expect(m.sender.sent.map(({ atMs }) => atMs - startMs)).toEqual([999, 45_000]);
});

test.each([
  ['KeySwitchedOff', /switched off/],
  ['WebhookRemoved', /removed/],
  ['WebhookDisabled', /disabled: 50 failed/],
] as const)('%s ends what is pending as failed with that reason', async (type, reason) => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: failedWith(500), afterMs: 10 });
  await m.push(501);
  await m.scheduler.advance(100);
  await m.account(onKey(type));
  await m.scheduler.advance(200 * SECOND_MS);
  expect(m.sender.sent).toHaveLength(1);
  expect(await stateOf(m, 501)).toMatchObject({
    state: 'failed',
    reason: expect.stringMatching(reason),
    attempts: 1,
  });
});

test('what was pending when a key was switched off ends, also where no process ran until it was on again', async () => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: failedWith(500), afterMs: 10 });
  await m.push(501);
  await m.scheduler.advance(100);
  m.kill();
  await m.account(onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
  m.start();
  await m.scheduler.advance(200 * SECOND_MS);
  expect(m.sender.sent).toHaveLength(1);
  expect(await stateOf(m, 501)).toMatchObject({ state: 'failed', reason: 'the key was switched off' });
  await m.queue.redeliver(
    { transactionId: 501, prefix: PREFIX },
    { force: false, dueAtMs: m.scheduler.now() },
  );
  await m.scheduler.advance(100);
  expect(m.sender.sent).toHaveLength(2);
});

test('what was recorded before a key was switched off is not attempted, though it is fanned out when it is on again', async () => {
  const m = await machine();
  const recorded = await m.confirm(501);
  await m.account(onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
  await m.fan(recorded);
  await m.scheduler.advance(100);
  expect(m.sender.sent).toEqual([]);
  const ended = { state: 'failed', reason: 'the key was switched off', attempts: 0 };
  expect(await stateOf(m, 501)).toEqual(ended);
});

test('what was held when a key was switched off ends too, and what was redelivered since does not', async () => {
  const access = (type: 'IntegrationEnabled' | 'IntegrationDisabled') =>
    ({ type, data: { account_id: 7 } }) as const;
  const m = await machine();
  await m.push(501);
  await m.scheduler.advance(100);
  await m.account(access('IntegrationDisabled'));
  await m.push(502);
  await m.scheduler.advance(100);
  m.kill();
  await m.account(onKey('KeySwitchedOff'), onKey('KeySwitchedOn'));
  await m.queue.redeliver(
    { transactionId: 501, prefix: PREFIX },
    { force: true, dueAtMs: m.scheduler.now() + 60 * SECOND_MS },
  );
  m.start();
  await m.scheduler.advance(SECOND_MS);
  expect(await stateOf(m, 502)).toMatchObject({ state: 'failed', reason: 'the key was switched off' });
  expect((await stateOf(m, 501))?.state).toBe('pending');
});

test('a voided transaction is not attempted again', async () => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: failedWith(500), afterMs: 10 });
  await m.push(501);
  await m.scheduler.advance(100);
  await m.fan(await m.void(501));
  await m.scheduler.advance(200 * SECOND_MS);
  expect(m.sender.sent).toHaveLength(1);
  expect((await stateOf(m, 501))?.state).toBe('withdrawn');
});

test('the 25th failure in a row causes one warning, the 50th switches the webhook off with its evidence', async () => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: failedWith(503), afterMs: 1 });
  const healthEvents = async () => {
    const events = await m.store.readStream('account-7');
    return events.filter(({ type }) => type === 'WebhookFailing' || type === 'WebhookDisabled');
  };
  for (let transaction = 1; transaction <= 24; transaction++) await m.push(transaction);
  await m.scheduler.advance(300 * SECOND_MS);
  expect(await healthEvents()).toEqual([]);
  for (let transaction = 25; transaction <= 49; transaction++) await m.push(transaction);
  await m.scheduler.advance(300 * SECOND_MS);
  expect((await healthEvents()).map(({ type }) => type)).toEqual(['WebhookFailing']);
  await m.push(50, 51);
  await m.scheduler.advance(300 * SECOND_MS);
  m.follow();
  const [, disabled] = await healthEvents();
  expect(disabled).toMatchObject({
    type: 'WebhookDisabled',
    metadata: { actor: 'system', command: 'dispatcher' },
    data: {
      prefix: PREFIX,
      reason: expect.stringMatching(/^5[01] deliveries failed in a row$/),
      last_answers: ['503', '503', '503', '503', '503'],
    },
  });
  const sent = m.sender.sent.length;
  await m.push(60);
  await m.scheduler.advance(300 * SECOND_MS);
  expect(m.sender.sent).toHaveLength(sent);
  expect(await m.queue.find(id(60))).toBeUndefined();
});

test('an enabled webhook starts without its old failures and at ten deliveries a second', async () => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: failedWith(503), afterMs: 1 });
  for (let transaction = 1; transaction <= 3; transaction++) await m.push(transaction);
  await m.scheduler.advance(300 * SECOND_MS);
  expect((await m.queue.health(PREFIX)).failedInARow).toBe(3);
  await m.account(onKey('WebhookDisabled'));
  await m.scheduler.advance(SECOND_MS);
  m.sender.answer = () => ({ outcome: OK, afterMs: 1 });
  m.sender.sent.length = 0;
  await m.account(onKey('WebhookEnabled'));
  const startMs = m.scheduler.now();
  const created_at = new Date(startMs).toISOString();
  for (let transaction = 100; transaction < 160; transaction++) {
    await m.fan(await m.confirm(transaction, { created_at }));
  }
  await m.scheduler.advance(10 * SECOND_MS);
  const inSecond = (second: number) =>
    m.sender.sent.filter(({ atMs }) => Math.floor((atMs - startMs) / SECOND_MS) === second).length;
  expect(inSecond(0)).toBeGreaterThanOrEqual(9);
  expect(inSecond(0)).toBeLessThanOrEqual(11);
  expect(inSecond(1)).toBeGreaterThanOrEqual(18);
  expect(inSecond(1)).toBeLessThanOrEqual(22);
  expect(m.sender.sent).toHaveLength(60);
  expect((await m.queue.health(PREFIX)).failedInARow).toBe(0);
});

test('a webhook that hangs with a backlog does not delay another by a millisecond', async () => {
  const other = 'bbbbbbbbbb';
  const m = await machine(keyIssued({ prefix: other }));
  m.sender.answer = ({ url }) =>
    url.endsWith('/hook') ? { outcome: TIMEOUT, afterMs: 500 } : { outcome: OK, afterMs: 5 };
  for (let transaction = 1; transaction <= 40; transaction++) await m.push(transaction);
  await m.account(
    webhookSet({ prefix: other, url: 'https://other.example/fine', set_at: '2026-09-03T08:00:00.000Z' }),
  );
  await m.scheduler.advance(2 * SECOND_MS);
  await m.push(100);
  await m.scheduler.advance(0);
  const fine = m.sender.sent.filter(({ url }) => url.endsWith('/fine'));
  expect(fine.map(({ atMs }) => atMs)).toEqual([m.scheduler.now()]);
  const hanging = m.sender.sent.filter(
    ({ url, atMs }) => url.endsWith('/hook') && atMs > m.scheduler.now() - 500,
  );
  expect(hanging.length).toBeLessThanOrEqual(4); // two in flight since it is known to fail, and their successors
});

test('what a killed process had under way is attempted again with the same id and number within 10 s', async () => {
  const m = await machine();
  m.sender.answer = () => 'never';
  await m.push(501);
  m.kill();
  m.sender.answer = () => ({ outcome: OK, afterMs: 5 });
  m.start();
  await m.scheduler.advance(10 * SECOND_MS);
  expect(m.sender.sent.map(({ id: sent, attempt }) => [sent, attempt])).toEqual([
    [id(501), 1],
    [id(501), 1],
  ]);
  expect((await stateOf(m, 501))?.state).toBe('delivered');
});

test('a dispatcher that stops starts no attempt, and records those under way', async () => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: OK, afterMs: 300 });
  await m.push(501);
  const stopped = m.dispatcher.stop();
  await m.push(502);
  await m.scheduler.advance(300);
  await stopped;
  expect(m.sender.sent).toHaveLength(1);
  expect((await stateOf(m, 501))?.state).toBe('delivered');
  expect(await stateOf(m, 502)).toMatchObject({ state: 'pending', attempts: 0 });
});

test('an attempt waits until the directory has reached the transaction, and is judged by it then', async () => {
  const m = await machine();
  await m.record('account-7', onKey('WebhookRemoved'));
  await m.record('account-7', webhookSet({ url: 'https://example.com/again', secret: null }));
  const recorded = await m.record('transaction-501', {
    type: 'TransactionConfirmed',
    data: confirmedData(),
  } as never);
  await m.fan(recorded);
  expect(m.sender.sent).toEqual([]);
  m.follow();
  await settle();
  expect(m.sender.sent).toMatchObject([{ url: 'https://example.com/again' }]);
});

test('while the event store takes no event the switch-off is judged again at the next failure', async () => {
  const m = await machine();
  m.sender.answer = () => ({ outcome: failedWith(503), afterMs: 1 });
  for (let transaction = 1; transaction <= 49; transaction++) await m.push(transaction);
  await m.scheduler.advance(300 * SECOND_MS);
  const append = m.store.append.bind(m.store);
  let away = true;
  m.store.append = async (appends) => {
    if (away && appends.some(({ stream }) => stream.startsWith('account-'))) throw new Error('away');
    return append(appends);
  };
  await m.push(50);
  await m.scheduler.advance(300 * SECOND_MS);
  away = false;
  await m.push(51);
  await m.scheduler.advance(300 * SECOND_MS);
  const types = (await m.store.readStream('account-7')).map(({ type }) => type);
  expect(types.filter((type) => type === 'WebhookDisabled')).toHaveLength(1);
});
