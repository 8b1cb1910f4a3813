import { createHash, hash } from 'node:crypto';
import {
  answerWith,
  type Hook,
  type WebhookReceiver,
  withoutImages,
} from '../support/deliveries/webhook-receiver.ts';

/** One in so many deliveries is refused the first time. */
const REFUSES_ONE_IN = 16;
const MAX_MS = 120;

/** What the receivers got of one delivery. */
export interface SeenDelivery {
  readonly id: string;
  readonly transactionId: number;
  readonly path: string;
  /** When each request came. */
  readonly timesMs: number[];
  /** Whether one of them was answered 200. */
  arrived: boolean;
  /** Hashes of the body without image URLs: more than one means that the body changed. */
  readonly texts: Set<string>;
}

/** The customers' receivers, which are slow or refuse once, depending on the delivery's id; and what they got. */
export class Receivers {
  readonly seen = new Map<string, SeenDelivery>();
  readonly #receiver: WebhookReceiver;
  requests = 0;

  constructor(receiver: WebhookReceiver) {
    this.#receiver = receiver;
  }

  /** The URL of a receiver that answers from now on. */
  open(path: string): string {
    this.#receiver.answer(path, (response, hook) => {
      this.#receiver.hooks.length = 0; // those of hours would not fit in memory
      const delivery = this.#note(hook);
      const byte = createHash('sha256').update(delivery.id).digest()[0] ?? 0;
      const isRefused = delivery.timesMs.length === 1 && byte % REFUSES_ONE_IN === 0;
      if (!isRefused) delivery.arrived = true;
      const answer = answerWith(isRefused ? 503 : 200);
      setTimeout(() => answer(response), (byte / 256) * MAX_MS);
    });
    return this.#receiver.url(path);
  }

  #note({ path, body, text, atMs }: Hook): SeenDelivery {
    this.requests += 1;
    const transactionId = Number(body.data.transaction.id);
    const delivery = this.seen.get(body.id) ?? {
      id: String(body.id),
      transactionId,
      path,
      timesMs: [],
      arrived: false,
      texts: new Set<string>(),
    };
    this.seen.set(delivery.id, delivery);
    delivery.timesMs.push(atMs);
    delivery.texts.add(hash('sha1', withoutImages(text)));
    return delivery;
  }
}
