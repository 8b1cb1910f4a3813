import { once } from 'node:events';
import { FuelError } from '../../../base/errors.ts';
import { printable, printableLine, withoutKeys } from '../../../base/printable.ts';
import { type Column, headsText, rowText, type Section, sectionsText } from '../../answers/columns.ts';

/** What a command prints: with --json documents alone, each on one line. */
export class Output {
  readonly json: boolean;
  #hasHeads: boolean;

  constructor(json: boolean) {
    this.json = json;
    this.#hasHeads = json;
  }

  /** Prints one JSON document with --json, the text otherwise, on standard output. */
  result(document: unknown, text: string): void {
    process.stdout.write(this.#text(document, text));
  }

  /**
   * As `result`, for a document with a secret that is shown only once. Rejects with `OUTPUT_LOST` if it could not be
   * written; `lost` says what is lost and what to do.
   */
  secret(document: unknown, text: string, lost: string): Promise<void> {
    return writeSecret(this.#text(document, text), lost);
  }

  /** Prints one document as `result`, or what is shown about it. */
  answer(document: unknown, sections: readonly Section[]): void {
    this.result(document, this.json ? '' : sectionsText(sections));
  }

  /** Prints one line of a list on standard output, as `result`; resolves when the reader can take more. */
  async line(document: unknown, text: string): Promise<void> {
    const shown = printableLine(this.json ? JSON.stringify(document) : text);
    if (!process.stdout.write(`${shown}\n`)) await once(process.stdout, 'drain');
  }

  /** As `line`, with a document's columns below the heads of the first one. */
  async row<D>(columns: readonly Column<D>[], document: D): Promise<void> {
    if (!this.#hasHeads) await this.line(undefined, headsText(columns));
    this.#hasHeads = true;
    await this.line(document, this.json ? '' : rowText(columns, document));
  }

  /** One line on standard error: notes and faults, never part of the result. */
  note(line: string): void {
    process.stderr.write(`${printableLine(withoutKeys(line))}\n`);
  }

  #text(document: unknown, text: string): string {
    return `${printable(this.json ? JSON.stringify(document) : text)}\n`;
  }
}

function writeSecret(text: string, lost: string): Promise<void> {
  const { stdout } = process;
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void => reject(new FuelError('OUTPUT_LOST', lost, { cause }));
    // The listeners that others added end the process quietly when the pipe is closed.
    const others = stdout.listeners('error') as ((error: Error) => void)[];
    stdout.removeAllListeners('error').on('error', fail);
    stdout.write(text, (error) => {
      if (error) return fail(error);
      stdout.off('error', fail);
      for (const other of others) stdout.on('error', other);
      resolve();
    });
  });
}

/** Aborts at the first SIGINT or SIGTERM, so that the command can stop cleanly; a second one ends the process. */
export function abortOnInterrupt(): AbortSignal {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted.abort());
  return interrupted.signal;
}
