import { once } from 'node:events';
import { FuelError } from '../../../base/errors.ts';
import { printable, printableLine, withoutKeys } from '../../../base/printable.ts';
import type { Noun, Shown } from '../../print/document.ts';
import { documentText, ListText } from '../../print/document-text.ts';

/** The first documents of a list decide how wide its columns are. They wait for each other this long, and so many. */
const GATHERED_MS = 100;
const GATHERED = 50;

/** What a command prints: with --json documents alone, each on one line. */
export class Output {
  readonly json: boolean;
  #list: ListText | undefined;
  #gathered: object[] = [];
  #gathering: NodeJS.Timeout | undefined;

  constructor(json: boolean) {
    this.json = json;
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

  /** Prints one document. `shown` is what people are shown in place of it, where that is not the same. */
  answer(document: object, { shown = document, ...how }: Shown & { readonly shown?: object } = {}): void {
    this.result(document, this.json ? '' : documentText(shown, { ...how, ...terminal() }));
  }

  /** Prints one line of a list on standard output, as `result`; resolves when the reader can take more. */
  async line(document: unknown, text: string): Promise<void> {
    await this.#write([this.json ? JSON.stringify(document) : text]);
  }

  /** Prints a document of a list, whose `id` names such a thing. */
  async row(document: object, id?: Noun): Promise<void> {
    if (this.json) return this.line(document, '');
    const isFirst = this.#list === undefined;
    this.#list ??= new ListText({ id, ...terminal() });
    this.#gathered.push(document);
    if (isFirst) this.#gathering = setTimeout(() => void this.end(), GATHERED_MS);
    if (this.#gathering === undefined || this.#gathered.length === GATHERED) await this.end();
  }

  /** Prints what still waits for the rest of its list. */
  async end(): Promise<void> {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    const lines = this.#gathered.length === 0 ? [] : (this.#list?.linesOf(this.#gathered) ?? []);
    this.#gathered = [];
    if (lines.length > 0) await this.#write(lines);
  }

  /** One line on standard error: notes and faults, never part of the result. */
  note(line: string): void {
    process.stderr.write(`${printableLine(withoutKeys(line))}\n`);
  }

  async #write(lines: readonly string[]): Promise<void> {
    const text = lines.map((line) => `${printableLine(line)}\n`).join('');
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
  }

  #text(document: unknown, text: string): string {
    return `${printable(this.json ? JSON.stringify(document) : text)}\n`;
  }
}

/** What is piped is as wide as it is. */
function terminal(): { readonly width?: number } {
  return process.stdout.isTTY ? { width: process.stdout.columns } : {};
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

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP, so that the command can stop cleanly; a second SIGINT or SIGTERM ends the
 * process. A closed terminal sends SIGHUP more than once: by the kernel and by its shell.
 */
export function abortOnInterrupt(): AbortSignal {
  const interrupted = new AbortController();
  const abort = (): void => interrupted.abort();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, abort);
  process.on('SIGHUP', abort);
  return interrupted.signal;
}
