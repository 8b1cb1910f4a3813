import { describe, expect, it } from 'vitest';
import { type Customer, PushService } from '../support/deliveries/push-service.ts';
import { answerWith, type Hook, withoutImages } from '../support/deliveries/webhook-receiver.ts';
import type { EventLine } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const CUSTOMERS = 10;
const EACH = 20;
/** The lease of a killed process's deliveries and the attempts after it; a busy machine may need more time for one. */
const SETTLED_WITHIN_MS = 30_000;

describe('SIGKILL with 200 deliveries in flight', () => {
  it('loses none, sends none under another id, and makes the same attempts again', async () => {
    // So long that none is attempted a second time before the kill, however slow the machine is.
    const push = await PushService.start({ FUEL_WEBHOOK_RETRY_DELAYS: '8s,8s' });
    const customers: Customer[] = [];
    for (let account = 1; account <= CUSTOMERS; account++) customers.push(await push.customer(account));
    // A receiver that has answered before is given more at once.
    await push.record(customers.flatMap(({ account }) => push.made(account, 10)));
    for (const { account } of customers) await push.settled(account, 'delivered', 10, SETTLED_WITHIN_MS);
    const warm = push.receiver.hooks.length;

    for (const { path } of customers) push.receiver.answer(path, () => undefined);
    const events: EventLine[] = customers.flatMap(({ account }) => push.made(account, EACH));
    await push.record(events);
    // On a busy machine some run out of time before they are sent, and come with the next attempt, too late for this.
    const endsAtMs = Date.now() + 6_000;
    const all = async () => push.receiver.hooks.length >= warm + CUSTOMERS * EACH || Date.now() > endsAtMs;
    await until(all, 7_000);
    expect(push.receiver.hooks.length).toBeGreaterThanOrEqual(warm + (CUSTOMERS * EACH) / 2);
    await push.service.kill();
    const firstLife = push.receiver.hooks.slice(warm);
    for (const { path } of customers) push.receiver.answer(path, answerWith(200));
    await push.service.start();
    for (const { account } of customers) {
      await push.settled(account, 'delivered', 10 + EACH, SETTLED_WITHIN_MS);
    }

    const hooks = push.receiver.hooks.slice(warm);
    const transactionOf = new Map(hooks.map(({ body }) => [body.id, body.data.transaction.id]));
    expect(transactionOf.size).toBe(CUSTOMERS * EACH);
    expect(new Set(transactionOf.values())).toEqual(new Set(events.map(({ data }) => data.transaction_id)));
    const texts = new Map<string, Set<string>>();
    for (const { body, text } of hooks) {
      texts.set(body.id, (texts.get(body.id) ?? new Set()).add(withoutImages(text)));
    }
    expect([...texts.values()].filter((versions) => versions.size !== 1)).toEqual([]);

    const again = firstLife[0]?.body.id;
    const { attempts } = await push.show(again);
    expect(attempts.at(-1)).toMatchObject({ status: 200, cycle: 1 });
    expect(attempts.map(({ number }: { number: number }) => number)).toEqual(
      attempts.map((_: unknown, index: number) => index + 1),
    );
    // The kill left one attempt of each unrecorded; any other request is on record.
    for (const [id, requests] of requestsById(hooks)) {
      expect(requests - (await push.attemptsOf(id))).toBeLessThanOrEqual(1);
    }
    const verified = await push.service.fuel(['verify', 'deliveries', '--json']);
    expect([verified.code, verified.json.deliveries]).toEqual([
      0,
      expect.objectContaining({ owed: 300, delivered: 300, missing: 0, surplus: 0 }),
    ]);
  }, 120_000);

  it('while events are being recorded loses none either, and a clean stop repeats none', async () => {
    const push = await PushService.start({ FUEL_WEBHOOK_RETRY_DELAYS: '1s,4s' });
    const { path } = await push.customer(1);
    const events = push.made(1, 300);
    const ids = events.map(({ data }) => data.transaction_id);
    const recording = inParts(events, (part) => push.record(part, { wait: false }));
    await push.receiver.received(path, 10);
    await push.service.kill();
    await recording;
    await push.service.start();
    await push.settled(1, 'delivered', 300, SETTLED_WITHIN_MS);
    expect(new Set(push.receiver.to(path).map(({ body }) => body.data.transaction.id))).toEqual(new Set(ids));

    const before = push.receiver.to(path).length;
    push.receiver.answer(path, (response) => void setTimeout(() => response.end('ok'), 100));
    await push.push(1, 100);
    await push.receiver.received(path, before + 20);
    expect(await push.service.stop()).toBe(0);
    await push.service.start();
    await push.settled(1, 'delivered', 400, SETTLED_WITHIN_MS);
    for (const [id, requests] of requestsById(push.receiver.to(path).slice(before))) {
      // An attempt that ran out of time may not have reached the receiver.
      expect(requests).toBeLessThanOrEqual(await push.attemptsOf(id));
    }
  }, 120_000);
});

function requestsById(hooks: readonly Hook[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { body } of hooks) counts.set(body.id, (counts.get(body.id) ?? 0) + 1);
  return counts;
}

/** A few at a time, each when those before it are recorded. */
async function inParts(
  events: readonly EventLine[],
  record: (part: readonly EventLine[]) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < events.length; at += 10) await record(events.slice(at, at + 10));
}
