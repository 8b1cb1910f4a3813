import { createHash, hash } from 'node:crypto';
import type { Request } from '../simulation/judge/deliveries.ts';
import {
  answerWith,
  type Hook,
  type WebhookReceiver,
  withoutImages,
} from '../support/deliveries/webhook-receiver.ts';

/** One in this many deliveries is refused the first time. */
const REFUSES_ONE_IN = 16;
const MAX_MS = 120;

/** The requests that a receiver got for one transaction. */
export interface SeenTransaction {
  readonly transactionId: number;
  readonly path: string;
  readonly requests: Request[];
  /** The hashes of the body without image URLs. More than one means that the body changed. */
  readonly texts: Set<string>;
}

/** The customers' receivers, which are slow or refuse once depending on the delivery's id, and what they got. */
export class Receivers {
  /** The transactions by path and id. */
  readonly seen = new Map<string, SeenTransaction>();
  readonly #receiver: WebhookReceiver;

  constructor(receiver: WebhookReceiver) {
    this.#receiver = receiver;
  }

  /** Opens a receiver. Returns its URL. */
  open(path: string): string {
    this.#receiver.answer(path, (response, hook) => {
      this.#receiver.hooks.length = 0; // the requests of hours would not fit in memory
      const { requests, texts } = this.#of(hook);
      const deliveryId = String(hook.body.id);
      const byte = createHash('sha256').update(deliveryId).digest()[0] ?? 0;
      const isTaken = requests.length > 0 || byte % REFUSES_ONE_IN !== 0;
      requests.push({ deliveryId, atMs: hook.atMs, isTaken, isLate: false });
      texts.add(hash('sha1', withoutImages(hook.text)));
      const answer = answerWith(isTaken ? 200 : 503);
      setTimeout(() => answer(response), (byte / 256) * MAX_MS);
    });
    return this.#receiver.url(path);
  }

  #of({ path, body }: Hook): SeenTransaction {
    const transactionId = Number(body.data.transaction.id);
    const place = `${path} ${transactionId}`;
    const found = this.seen.get(place) ?? { transactionId, path, requests: [], texts: new Set<string>() };
    this.seen.set(place, found);
    return found;
  }
}
