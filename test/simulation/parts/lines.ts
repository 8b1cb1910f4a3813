import { confirmedData, externalData } from '../../support/transactions/records.ts';

type Overrides = Readonly<Record<string, unknown>>;

export const confirmed = (id: number, overrides: Overrides) => ({
  type: 'TransactionConfirmed',
  data: confirmedData({ transaction_id: id, ...overrides }),
});

export const external = (id: number, overrides: Overrides) => ({
  type: 'ExternalTransactionRecorded',
  data: externalData({ transaction_id: id, ...overrides }),
});

export const voided = (id: number, overrides: Overrides) => ({
  type: 'TransactionVoided',
  data: { transaction_id: id, reason: 'duplicate', ...overrides },
});

export const cancelled = (id: number, overrides: Overrides) => ({
  type: 'TransactionCancelled',
  data: { transaction_id: id, reason: null, ...overrides },
});
