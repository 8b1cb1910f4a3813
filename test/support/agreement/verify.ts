import type { Damage, EventStore } from '../../../src/event-store/event-store.ts';
import { Unreadable } from '../../../src/event-store/recorded-event.ts';
import { type CompareOptions, compareLog } from '../../../src/operator/verify/compare-log.ts';
import {
  type DeliveryAgreement,
  DeliverySide,
  type DeliverySideOptions,
} from '../../../src/operator/verify/verify-deliveries.ts';
import {
  type ViewAgreement,
  ViewSide,
  type ViewSideOptions,
} from '../../../src/operator/verify/verify-view.ts';
import { replacing } from '../interposed.ts';

interface Overrides extends Omit<CompareOptions, 'view'> {
  /** An event that is reported as damaged in the log. */
  readonly damaged?: { readonly event: Damage['event'] };
}

export type VerifyDeliveriesOptions = DeliverySideOptions & Overrides;
export type VerifyViewOptions = ViewSideOptions & Overrides;

const NOTHING_PARKED = { parked: async () => [] };

/** Compares the delivery log with what the events call for. Changes nothing. */
export async function verifyDeliveries(options: VerifyDeliveriesOptions): Promise<DeliveryAgreement> {
  const side = new DeliverySide(options);
  await compareLog([side], { ...options, store: withDamage(options), view: () => NOTHING_PARKED });
  return side.agreement;
}

/** Compares the view with what the events render to. */
export async function verifyView({ view, ...options }: VerifyViewOptions): Promise<ViewAgreement> {
  const side = new ViewSide({ ...options, view });
  await compareLog([side], { ...options, store: withDamage(options), view: () => view });
  return side.agreement;
}

function withDamage({ store, damaged }: Pick<Overrides, 'store' | 'damaged'>): EventStore {
  if (damaged === undefined) return store;
  const { stream, revision } = damaged.event ?? { stream: '', revision: 0 };
  const data = new Unreadable('x', { isDamage: true });
  return replacing(store, {
    async *subscribe(options) {
      for await (const batch of store.subscribe(options)) {
        const { position } = batch;
        const event = { position, stream, revision, id: 'x', type: 'x', data, metadata: {}, recordedAtMs: 0 };
        yield { ...batch, events: [...batch.events, event] };
      }
    },
  });
}
