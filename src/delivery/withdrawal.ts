/** The reason of a delivery whose transaction is not to be pushed any more. */
export const WITHDRAWN = 'the transaction was voided or cancelled';
