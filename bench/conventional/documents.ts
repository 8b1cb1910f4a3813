import type { TransactionEvent } from '../../src/domain/transaction-events.ts';
import type { TransactionDocument } from './database.ts';

interface Stored {
  accountId: number;
  document: TransactionDocument;
}

type Recorded = Extract<TransactionEvent, { type: 'TransactionConfirmed' | 'ExternalTransactionRecorded' }>;

/** Returns the visible transactions as documents, as a conventional service would have them in its table. */
export function documentsOf(events: Iterable<TransactionEvent>): Iterable<Stored> {
  const documents = new Map<number, Stored>();
  for (const event of events) {
    if (event.type === 'TransactionVoided' || event.type === 'TransactionCancelled') {
      documents.delete(event.data.transaction_id);
    } else {
      documents.set(event.data.transaction_id, {
        accountId: event.data.account_id,
        document: toDocument(event),
      });
    }
  }
  return documents.values();
}

function toDocument({ type, data }: Recorded): TransactionDocument {
  const external = type === 'ExternalTransactionRecorded';
  const { mobile_number, ...driver } = data.driver;
  return {
    id: data.transaction_id,
    status: external ? 'EXTERNAL' : 'CONFIRMED',
    created_at: data.created_at,
    confirmed_at: data.confirmed_at,
    correction_reference_id: data.correction_reference_id,
    corporate: data.corporate,
    corporate_group: data.corporate_group,
    fuel: {
      type: data.fuel.type,
      liters: Number(data.fuel.liters),
      price_per_liter: Number(data.fuel.price_per_liter),
      amount: Number(data.fuel.amount),
    },
    odometer_reading: data.odometer_reading,
    distance_traveled: data.distance_traveled,
    fuel_consumption: data.fuel_consumption === null ? null : Number(data.fuel_consumption),
    station: external
      ? { id: null, name: data.station.name, provider: null, is_external: true }
      : { ...data.station, is_external: false },
    vehicle: data.vehicle,
    driver: mobile_number === undefined || mobile_number === null ? driver : { ...driver, mobile_number },
    fees: {
      total_fees: Number(data.fees.total_fees),
      total_vat: Number(data.fees.total_vat),
      total_amount: Number(data.fees.total_amount),
    },
    images: data.images,
  };
}
