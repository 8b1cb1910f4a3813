import { FuelError } from '../../../../base/errors.ts';
import { importAnswer, importShown, unknownNote } from '../../../answers/import.ts';
import { findImport, type ImportEntry, listImports, recordImport } from '../../../import/import-log.ts';
import { importTransactions } from '../../../import/import-transactions.ts';
import { voidImport } from '../../../import/void-import.ts';
import { command, noun, type Session, unlessDryRun } from '../../command/command.ts';
import { currentAccounts } from '../../command/known-names.ts';
import { storeOfDryRun } from '../../command/known-store.ts';
import { longWork, openInput, requireReadable } from '../../command/long-work.ts';
import * as option from '../../command/options.ts';

const DEFAULT_LIMIT = 50;

export const importFile = command({
  name: 'import',
  summary: 'record transaction events from a file of JSON lines, or from standard input (-)',
  example: 'fuel transaction import september.jsonl',
  syntax: (it) =>
    it
      .argument('<file>', 'JSON lines, one event each; - for standard input', option.readText)
      .option('--dry-run', 'judge every line and record nothing'),
  changes: unlessDryRun,
  begins: true,
  check: ([file]) => requireReadable(file),
  work(session, [file], { dryRun }) {
    const { engines, clock, author } = session;
    const store = dryRun ? storeOfDryRun(session) : engines.store();
    let importId: string | undefined;
    return longWork(
      session,
      async ({ onRefused, ...parts }) => {
        const options = {
          store,
          clock,
          author,
          ...parts,
          input: openInput(file, parts.signal),
          onRefused: (lineNumber: number, reason: string) => onRefused(`line ${lineNumber}`, reason),
        };
        if (dryRun) return importTransactions({ ...options, dryRun });
        const source = file === '-' ? 'standard input' : file;
        const recorded = await recordImport({ ...options, source });
        importId = recorded.importId;
        return recorded.counts;
      },
      {
        names: dryRun ? { recorded: 'would record' } : {},
        next: ({ recorded }) => (recorded > 0 && importId ? `fuel import show ${importId}` : undefined),
      },
    );
  },
});

/** The members of a line. */
const IMPORT_COLUMNS = [
  'id',
  'state',
  'at',
  'ended_at',
  'actor',
  'source',
  'recorded',
  'unchanged',
  'refused',
  'accounts',
];

const list = command({
  name: 'list',
  summary: 'list imports, newest first',
  example: 'fuel import list --since 2026-09-01',
  syntax: (it) =>
    it
      .addOption(option.since('begun'))
      .option('--limit <n>', 'at most this many', option.readCount, DEFAULT_LIMIT),
  lists: { what: 'imports', csv: () => IMPORT_COLUMNS },
  async work({ engines, clock, out }, _, { since, limit }) {
    let printed = 0;
    for await (const entry of listImports(engines.store(), { sinceMs: since, nowMs: clock.now() })) {
      await out.row(importAnswer(entry));
      if (++printed >= limit) return;
    }
  },
});

const show = command({
  name: 'show',
  summary: 'show what an import recorded and what is left of it',
  example: 'fuel import show 2026-09-03-1a2b3c4d',
  syntax: (it) => it.argument('<id>', 'the import'),
  async work(session, [id]) {
    const { engines, out } = session;
    const entry = await requireImport(engines, id);
    const shown = await importShown(entry, engines.store(), await currentAccounts(session));
    out.answer(shown);
    const unknown = { accounts: shown.unknown_accounts, corporates: shown.unknown_corporates };
    const note = unknownNote(unknown, shown.id);
    if (note !== undefined) out.note(note);
  },
});

const voidAll = command({
  name: 'void',
  summary: 'void the transactions that an import recorded and that customers still see',
  example: 'fuel import void 2026-09-03-1a2b3c4d --reason "sent twice by the provider"',
  syntax: (it) =>
    it
      .argument('<id>', 'the import')
      .requiredOption('--reason <reason>', option.REASON, option.readText)
      .option('--dry-run', 'count what would be voided, and record nothing'),
  changes: unlessDryRun,
  async work(session, [id], { reason, dryRun }) {
    const { engines, clock, author, out } = session;
    const entry = await requireImport(engines, id);
    if (entry.end === undefined)
      out.note(
        `Import ${id} was interrupted, or is still running. If so, stop it first: what it records later stays`,
      );
    return longWork(
      session,
      async (parts) => {
        const { pushedTo, ...counts } = await voidImport(entry, {
          store: engines.store(),
          queue: engines.queue(),
          clock,
          reason,
          dryRun,
          ...parts,
          author: { ...author, causationId: entry.started.id },
        });
        const keys = [...pushedTo].sort(([, one], [, other]) => other - one);
        for (const [prefix, count] of keys)
          out.note(
            `Key ${prefix}'s receiver has ${count} of these and is not notified: ask the customer to pull`,
          );
        return counts;
      },
      { names: dryRun ? { voided: 'would void' } : {} },
    );
  },
});

export const addImportCommands = noun({
  name: 'import',
  summary: 'list imports, with who imported which file and when, and undo them',
  example: 'fuel import list',
  commands: [list, show, voidAll],
});

/** Throws `REFUSED` for an unknown import. */
async function requireImport({ store }: Session['engines'], id: string): Promise<ImportEntry> {
  const entry = await findImport(store(), id);
  if (entry !== undefined) return entry;
  throw new FuelError('REFUSED', `No import ${id}. See \`fuel import list\``);
}
