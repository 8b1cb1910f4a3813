import { describe, expect, test } from 'vitest';
import { onKey, PREFIX } from '../../support/accounts/account-samples.ts';
import { answered, newDelivery, SUCCESS } from '../../support/deliveries/deliveries.ts';
import { settle } from '../../support/deliveries/fake-alarm-clock.ts';
import { countByState } from '../../support/deliveries/listed.ts';
import type { PushMachine } from '../../support/deliveries/push.ts';
import { CommitGate, pushMachine } from '../../support/deliveries/push-machine.ts';

const SECOND_MS = 1_000;
const range = (count: number, first = 1) => Array.from({ length: count }, (_, index) => first + index);
/** A delivery that is owed now. */
const owed = (m: PushMachine, transactionId: number) =>
  newDelivery(transactionId, { prefix: PREFIX, position: m.store.end() });

/** Delivers transactions to a receiver that answers so; all attempts are over when it resolves. */
async function deliver(m: PushMachine, status: number, transactionIds: readonly number[]): Promise<void> {
  m.sender.answer = () => ({ outcome: status === 200 ? SUCCESS : answered(status), afterMs: 1 });
  await m.dispatcher.accept(transactionIds.map((transactionId) => owed(m, transactionId)));
  await m.clock.advance(300 * SECOND_MS);
}

async function recorded(m: PushMachine): Promise<readonly string[]> {
  const events = await m.store.readStream('account-7');
  return events
    .map(({ type }) => type)
    .filter((type) => type.startsWith('Webhook') && type !== 'WebhookUrlSet');
}

describe('a webhook that fails', () => {
  test('is not switched off by a clock that is far ahead of the newest event', async () => {
    const m = await pushMachine();
    await deliver(m, 503, [1]);
    const aheadMs = 4 * 86_400 * SECOND_MS;
    await m.clock.jump(aheadMs);
    await m.clock.advance(60 * SECOND_MS);
    expect(m.sender.sent.length).toBeGreaterThan(1);
    expect(await recorded(m)).toEqual([]);
    await m.confirm(3); // recorded at that time, so the clock is right
    await deliver(m, 503, [2]);
    expect(await recorded(m)).toContain('WebhookDisabled');
  });
});

describe('a switch-off', () => {
  test('starts no attempt while it is being recorded, and ends what is pending with its reason', async () => {
    const m = await pushMachine();
    await deliver(m, 503, range(49));
    const append = m.store.append.bind(m.store);
    const mayAppend = Promise.withResolvers<void>();
    m.store.append = async (appends) => {
      await mayAppend.promise;
      return append(appends);
    };
    await deliver(m, 503, [50]);
    const sent = m.sender.sent.length;
    await deliver(m, 200, range(5, 201));
    expect(m.sender.sent).toHaveLength(sent);
    expect(await countByState(m.queue)).toMatchObject({ pending: 5 });
    mayAppend.resolve();
    await m.clock.advance(100);
    expect(await countByState(m.queue)).toMatchObject({ pending: 5 }); // its event is not seen yet
    await m.follow();
    await m.clock.advance(100);
    expect(m.sender.sent).toHaveLength(sent);
    expect(await countByState(m.queue)).toMatchObject({ pending: 0, failed: 55 });
    const ended = await m.queue.find(owed(m, 201).id);
    expect(ended?.reason).toBe('the webhook was disabled: 50 deliveries failed in a row');
  });

  test('by another process, seen before a failure is recorded, is not waited for again', async () => {
    const gate = new CommitGate();
    const m = await pushMachine({ onCommit: gate.onCommit });
    await deliver(m, 503, range(49));
    m.sender.answer = ({ attempt }) => ({ outcome: answered(503), afterMs: attempt === 3 ? 20_000 : 1 });
    await m.dispatcher.accept([owed(m, 50)]);
    await m.clock.advance(200 * SECOND_MS);
    const late = owed(m, 51);
    gate.close('change');
    const ended = m.account(onKey('WebhookDisabled'));
    await m.clock.advance(20 * SECOND_MS);
    expect((await m.queue.health(PREFIX)).failedInARow).toBe(50);
    expect(await recorded(m)).toEqual(['WebhookFailing', 'WebhookDisabled']);
    gate.open();
    await ended;
    await m.clock.advance(SECOND_MS);
    await m.queue.enqueue([late]);
    await m.clock.advance(6 * SECOND_MS);
    expect(await countByState(m.queue)).toMatchObject({ pending: 0, failed: 51 });
  });

  test.each(['after', 'before'])(
    'leaves the way free once the webhook is enabled, where its event is seen %s it is reported',
    async (when) => {
      const m = await pushMachine();
      const append = m.store.append.bind(m.store);
      m.store.append = async (appends) => {
        const result = await append(appends);
        if (when === 'before') {
          await m.follow();
          await settle();
        }
        return result;
      };
      await deliver(m, 503, range(50));
      await m.follow();
      await settle();
      expect(await recorded(m)).toEqual(['WebhookFailing', 'WebhookDisabled']);
      await m.account(onKey('WebhookEnabled'));
      await m.clock.advance(60 * SECOND_MS);
      await deliver(m, 200, [201]);
      expect(await countByState(m.queue)).toMatchObject({ pending: 0, delivered: 1 });
    },
  );
});
