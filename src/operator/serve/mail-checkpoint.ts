import { recordedAt } from '../../event-store/codec.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import type { Mailer } from '../../push/notices/mailer.ts';
import { lastSeal } from '../../seals/seals.ts';

/** Mails the newest checkpoint to who keeps it out of the operator's reach. Rejects where it can't be sent now. */
export async function mailCheckpoint(
  to: readonly string[],
  { store, mailer }: { readonly store: Pick<EventStore, 'readLast'>; readonly mailer: Pick<Mailer, 'send'> },
): Promise<void> {
  const seal = await lastSeal(store);
  if (seal === undefined) return; // nothing was recorded yet
  const at = recordedAt(seal.recorded);
  const result = await mailer.send({
    to,
    subject: `Checkpoint of the fuel transaction log: ${seal.size} events at ${at}`,
    text: `Keep this: with it "fuel audit verify --checkpoint" proves what the log was at ${at}.\n\n${seal.note}`,
  });
  if (result.kind !== 'sent')
    throw new Error(
      `it was ${result.kind === 'refused' ? `refused: ${result.reason}` : 'not sent: FUEL_SMTP_URL is not set'}`,
    );
}
