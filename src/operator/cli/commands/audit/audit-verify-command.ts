import { storeIdentity } from '../../../../event-store/store-identity.ts';
import { verifierOf } from '../../../../seals/seal-key.ts';
import { type LogFault, verifyLog } from '../../../../seals/verify-log.ts';
import { recordProof } from '../../../audit/prove-log.ts';
import { readCheckpoint } from '../../../audit/read-checkpoint.ts';
import { command } from '../../command/command.ts';
import * as option from '../../command/options.ts';

export const addAuditVerifyCommand = command({
  name: 'verify',
  summary: 'check the log against its seals and a checkpoint you kept',
  example: 'fuel audit verify --checkpoint checkpoint-2026-09-01.txt',
  syntax: (it) =>
    it
      .option('--checkpoint <file>', 'a checkpoint you kept; - for standard input', option.readText)
      .option(
        '--since <n>',
        'begin at the newest seal of at most this size; everything before it counts as proven',
        option.readCount,
      )
      .option(
        '--key <key>',
        'the public key, NAME+ID+KEY, or several separated by commas (default: that of FUEL_SEAL_KEY)',
        option.readText,
      ),
  async work({ config, engines, clock, author, out, signal }, _args, options) {
    const store = engines.store();
    const key = verifierOf(await storeIdentity(store, clock), config, options.key);
    const { checkpoint } = options.checkpoint === undefined ? {} : readCheckpoint(options.checkpoint, key);
    const onProgress = (events: number): void => out.progress(`${events} events`);
    const found = await verifyLog({ store, key, checkpoint, since: options.since, onProgress, signal });
    if (signal.aborted) return 1;
    const { size, root, seals, sealedSize, sealedAt, erased, fault } = found;
    if (fault !== undefined) out.note(faultText(fault));
    const document = {
      size,
      root,
      seals,
      proven_to: sealedSize,
      sealed_at: sealedAt,
      faults: fault === undefined ? 0 : 1,
      gaps: erased.reduce((sum, { events }) => sum + events, 0),
      erased,
      key: String(key),
      fault: fault ?? null,
    };
    // The checkpoint was proven, or there is a fault.
    out.answer(document, { shown: { ...document, checkpoint: checkpoint?.size ?? null } });
    await recordProof(found, { store, author, clock });
    return fault === undefined ? 0 : 1;
  },
});

const SAYS = {
  differs: 'is not what was sealed',
  missing: 'is missing',
  inserted: 'was inserted',
  moved: 'is at another place than where it was sealed',
};

export function faultText(fault: LogFault): string {
  if (fault.kind === 'seal') return `the seal of ${fault.size} events does not hold: ${fault.reason}`;
  if (fault.kind === 'checkpoint')
    return `the checkpoint of ${fault.size} events does not hold: ${fault.reason}`;
  if (fault.kind === 'hidden')
    return `${fault.place} was hidden: its stream was deleted or truncated, and no event says why`;
  if (fault.kind === 'unreadable')
    return `the seal ${fault.place} can't be read, so what it sealed is not proven`;
  return `${fault.place} ${SAYS[fault.kind]} (event ${fault.index + 1} of the log)`;
}
