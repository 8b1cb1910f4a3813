import { storeIdentity } from '../../../../event-store/store-identity.ts';
import { LogVerifier } from '../../../../seals/checkpoint.ts';
import { verifierOf } from '../../../../seals/seal-key.ts';
import { readId, requireRange } from '../../../answers/filters.ts';
import { checkExport } from '../../../audit/check-export.ts';
import { exportProof } from '../../../audit/export-proof.ts';
import { readCheckpoint } from '../../../audit/read-checkpoint.ts';
import { command, leaf } from '../../command/command.ts';
import { requireKnown } from '../../command/known-names.ts';
import * as option from '../../command/options.ts';
import { Output } from '../../command/output.ts';

export const addAuditExportCommand = command({
  name: 'export',
  summary:
    "export an account's events and those of its transactions, each with the proof that it is in the sealed log",
  example: 'fuel audit export --account 7 --output north-haulage',
  syntax: (it) =>
    it
      .requiredOption('--account <id>', 'the account', readId)
      .addOption(option.since('recorded'))
      .addOption(option.until('recorded'))
      .option(
        '--checkpoint <file>',
        'an older checkpoint, which the export proves to be continued; - for standard input',
        option.readText,
      )
      .requiredOption('--output <dir>', 'a new or empty folder', option.readText),
  async work(session, _args, options) {
    const { config, engines, clock, out, signal } = session;
    requireRange(options);
    await requireKnown(session, { account: options.account });
    const store = engines.store();
    const key = verifierOf(await storeIdentity(store, clock), config);
    const older = options.checkpoint === undefined ? undefined : readCheckpoint(options.checkpoint, key);
    const { account: accountId, since: sinceMs, until: untilMs, output: folder } = options;
    const written = await exportProof({ store, accountId, sinceMs, untilMs, older, folder, signal });
    out.answer({ ...written, output: folder, key: String(key) });
  },
});

export const addAuditCheckCommand = leaf({
  name: 'check',
  summary: 'check an export on any machine: every event, its proof and the signature',
  example: "fuel audit check north-haulage --key 'fuel-integration/6f1f…+8a384088+AQWw…'",
  syntax: (it) =>
    it
      .argument('<dir>', 'the folder of the export')
      .requiredOption(
        '--key <key>',
        'the public key, NAME+ID+KEY, or several separated by commas',
        option.readText,
      )
      .option(...option.JSON_OPTION),
  async run([folder], { key, json = false }) {
    const { faults, ...checked } = await checkExport(folder, LogVerifier.parse(key));
    const out = new Output(json);
    for (const fault of faults) out.note(fault);
    out.answer({ ...checked, faults });
    return faults.length === 0 ? 0 : 1;
  },
});
