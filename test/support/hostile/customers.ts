import { confirmed, linesOf } from '../transactions/e2e-samples.ts';

const ROWS = 60;

/** More transactions with photos than fit on a page, for each of these accounts. */
export function customersLines(accounts: readonly number[]): string {
  const events = accounts.flatMap((account_id) =>
    Array.from({ length: ROWS }, (_, number) => {
      const id = account_id * 1_000 + number;
      const images = { pump: `photos/${id}/pump.jpg`, odometer: `photos/${id}/odometer.jpg` };
      return confirmed(id, { account_id, images });
    }),
  );
  return linesOf(events);
}
