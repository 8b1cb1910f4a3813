import { once } from 'node:events';
import { FuelError } from '../../../base/errors.ts';
import { printable, printableLine, withoutKeys } from '../../../base/printable.ts';
import { type Column, headsText, rowText, type Section, sectionsText } from '../../answers/columns.ts';

export interface Output {
  readonly json: boolean;
  /** Prints one JSON document with --json, the text otherwise, on standard output. */
  result(document: unknown, text: string): void;
  /**
   * As `result`, for a document with a secret that is shown only once. Rejects with `OUTPUT_LOST` if it could not be
   * written; `lost` says what is lost and what to do.
   */
  secret(document: unknown, text: string, lost: string): Promise<void>;
  /** Prints one document as `result`, or what is shown about it. */
  answer(document: unknown, sections: readonly Section[]): void;
  /** Prints one line of a list on standard output, as `result`; resolves when the reader can take more. */
  line(document: unknown, text: string): Promise<void>;
  /** As `line`, with a document's columns below the heads of the first one. */
  row<D>(columns: readonly Column<D>[], document: D): Promise<void>;
  /** One line on standard error: notes and faults, never part of the result. */
  note(line: string): void;
}

export function output(json: boolean): Output {
  const textOf = (document: unknown, text: string): string =>
    `${printable(json ? JSON.stringify(document) : text)}\n`;
  const result = (document: unknown, text: string): void => void process.stdout.write(textOf(document, text));
  const line = async (document: unknown, text: string): Promise<void> => {
    const shown = printableLine(json ? JSON.stringify(document) : text);
    if (!process.stdout.write(`${shown}\n`)) await once(process.stdout, 'drain');
  };
  let hasHeads = json;
  return {
    json,
    result,
    secret: (document, text, lost) => writeSecret(textOf(document, text), lost),
    answer: (document, sections) => result(document, json ? '' : sectionsText(sections)),
    line,
    async row(columns, document) {
      if (!hasHeads) await line(undefined, headsText(columns));
      hasHeads = true;
      await line(document, json ? '' : rowText(columns, document));
    },
    note: (line) => void process.stderr.write(`${printableLine(withoutKeys(line))}\n`),
  };
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
