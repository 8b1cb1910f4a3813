import { createInterface } from 'node:readline/promises';
import { FuelError } from '../../../../base/errors.ts';
import type { Position } from '../../../../event-store/recorded-event.ts';
import { readId } from '../../../answers/filters.ts';
import { eraseTransaction } from '../../../erase/erase-transaction.ts';
import { COPIES_REMAIN, removeErasedBytes } from '../../../erase/erased-bytes.ts';
import { fannedOut } from '../../../erase/fanned-out.ts';
import { lineBlocks, linesIn } from '../../../lines/lines.ts';
import { replayIfConsumed } from '../../../parked/retry-parked.ts';
import { command } from '../../command/command.ts';
import { openInput, requireReadable } from '../../command/long-work.ts';
import * as option from '../../command/options.ts';

export const erase = command({
  name: 'erase',
  summary:
    'permanently remove transactions and their events; their ids are never recorded, shown or pushed again',
  example: 'fuel transaction erase 501 502 --reason "court order 2026/118"',
  syntax: (it) =>
    it
      .argument('[ids...]', 'the transactions', option.readIds)
      .requiredOption('--reason <reason>', option.REASON, option.readText)
      .option('--file <file>', 'a file of ids, one per line; - for standard input', option.readText)
      .option('--yes', 'do not ask for confirmation'),
  changes: true,
  async check(_, { file, yes }) {
    if (!yes && !(process.stdin.isTTY && process.stderr.isTTY))
      throw option.usage('Erasing is permanent. Without a terminal, confirm it with --yes');
    if (file !== undefined) await requireReadable(file);
  },
  async work(session, [given], { reason, file, yes }) {
    const { config, engines, clock, author, out, signal } = session;
    const listed = file === undefined ? [] : await idsIn(file, signal);
    const ids = [...new Set([...given, ...listed])];
    if (ids.length === 0) throw option.usage('Give the ids of the transactions, or a --file of them');
    if (!yes) await confirm(ids);
    const parts = { store: engines.store(), queue: engines.queue(), view: engines.view() };
    let last: Position = 0;
    const erased: number[] = [];
    for (const id of ids) {
      if (signal.aborted) break;
      try {
        last = Math.max(last, await eraseTransaction(id, { ...parts, clock, author, reason }));
        erased.push(id);
        out.progress(`erased ${erased.length} of ${ids.length}`);
      } catch (error) {
        if (!(error instanceof FuelError && error.code === 'REFUSED') || ids.length === 1) throw error;
        out.note(error.message);
      }
    }
    const [coordination, subscriptions] = [engines.coordination(), engines.subscriptions()];
    await replayIfConsumed(coordination, subscriptions);
    await fannedOut(last, { coordination, subscriptions });
    const onStep = (step: string): void => out.progress(step);
    const remains = await removeErasedBytes(engines, { folder: config.FUEL_DATA_DIR, onStep });
    for (const { erasesLater } of engines.remote) if (erasesLater !== undefined) out.note(erasesLater);
    const isWhole = remains.length === 0;
    for (const id of erased) {
      const document = { id, erased: true, ...(isWhole ? {} : { remains }) };
      await out.line(document, `Erased transaction ${id}${isWhole ? '' : ', but not everywhere'}`);
    }
    if (signal.aborted) out.note('Interrupted: run the same command again to continue');
    for (const { file: path, reason: why } of remains)
      out.note(`${path} may still contain the record: ${why}`);
    out.note(COPIES_REMAIN);
    return isWhole && erased.length === ids.length ? 0 : 1;
  },
});

async function idsIn(file: string, signal: AbortSignal): Promise<number[]> {
  const ids: number[] = [];
  for await (const block of lineBlocks(openInput(file, signal))) {
    for (const line of linesIn(block)) {
      if (!('text' in line) || !/^\d+$/.test(line.text))
        throw option.usage(`Line ${line.number} of ${file} is not a transaction id`);
      ids.push(readId(line.text));
    }
  }
  return ids;
}

/** An erasure can't be undone, so a mistyped id must not cause one. */
async function confirm(ids: readonly number[]): Promise<void> {
  const [expected, what] =
    ids.length === 1 ? [ids[0], 'the id of the transaction'] : [ids.length, 'the number of transactions'];
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`This is permanent. Type ${what} to confirm: `);
  terminal.close();
  if (answer.trim() !== String(expected)) throw new FuelError('REFUSED', `Not erased: that is not ${what}`);
}
