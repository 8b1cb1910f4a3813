import { describe, expect, test } from 'vitest';
import type { AttemptOutcome } from '../../../src/push/queue/delivery.ts';
import { outcomeInTime, receiverTrust } from '../../support/deliveries/test-sender.ts';
import { OK, openReceiver, sendRequest } from '../../support/deliveries/tls-receiver.ts';
import { BEHAVIOURS, type Behaviour, drip } from './behaviours.ts';

const { certificate, sender } = receiverTrust();
const MAX_DRIPPED = 400;

/** The judgement of an attempt, and whether the next one finds its connection open. */
async function judgementOf(answer: Behaviour['answer']) {
  let isOver = false;
  const receiver = await openReceiver(certificate(), (request) => {
    if (isOver) request.socket.write(OK);
    else if (typeof answer === 'string') request.socket.write(answer, 'latin1');
    else answer(request);
  });
  const same = sender();
  const outcome = await outcomeInTime(same, sendRequest(receiver.url));
  isOver = true;
  const connections = receiver.connections();
  await outcomeInTime(same, sendRequest(receiver.url));
  const { ok, answer: said } = outcome;
  return { ok, ...(ok ? {} : failureOf(outcome)), ...said, kept: receiver.connections() === connections };
}

function failureOf(outcome: AttemptOutcome & { readonly ok: false }) {
  return { kind: outcome.kind, detail: outcome.detail };
}

describe('a receiver that answers', () => {
  test.each(BEHAVIOURS.map((behaviour) => [behaviour.what, behaviour] as const))(
    '%s',
    async (_, behaviour) => {
      const { answer, judged } = behaviour;
      const expected =
        judged.detail === undefined ? judged : { ...judged, detail: expect.stringMatching(judged.detail) };
      expect(await judgementOf(answer)).toMatchObject(expected);
      if (typeof answer !== 'string' || answer.length > MAX_DRIPPED) return;
      // Bytes after the end may come too late to be seen.
      const { kept, ...same } = expected;
      expect(await judgementOf(({ socket }) => drip(socket, answer))).toMatchObject(kept ? expected : same);
    },
  );
});
