import { once } from 'node:events';
import { FuelError } from '../../../base/errors.ts';
import { printable, printableLine, withoutKeys } from '../../../base/printable.ts';
import { csvRecord } from '../../print/csv.ts';
import type { Noun, Shown } from '../../print/document.ts';
import { documentText, ListText } from '../../print/document-text.ts';

/**
 * The first documents of a list decide how wide its columns are, so they are gathered before any is printed: at most this
 * many, for at most this long.
 */
const GATHERED = 50;
const GATHERED_MS = 100;
const PROGRESS_EVERY_MS = 100;
const CLEAR_LINE = '\r\u001b[K';

/** The members of a list's document that the text for people uses. */
interface Row {
  readonly id?: Noun;
  readonly shown?: object;
}

/** The output of a command. With --json standard output gets only documents, each on one line. */
export class Output {
  readonly json: boolean;
  readonly #csv: readonly string[] | undefined;
  #rows = 0;
  #list: ListText | undefined;
  #gathered: object[] = [];
  #gathering: NodeJS.Timeout | undefined;
  #progressAtMs = 0;
  #hasProgress = false;

  /** Lists are printed as CSV if `csv` names the members. */
  constructor(json: boolean, { csv }: { readonly csv?: readonly string[] | undefined } = {}) {
    this.json = json;
    this.#csv = csv;
  }

  /** The number of lines of a list that were printed so far. */
  get rows(): number {
    return this.#rows;
  }

  /** Prints one JSON document with --json, otherwise the text, on standard output. */
  result(document: unknown, text: string): void {
    this.#clearProgress();
    process.stdout.write(this.#text(document, text));
  }

  /**
   * Prints a document with a secret that is shown only once. Rejects with `OUTPUT_LOST` if it could not be written; `lost`
   * says what is lost and what to do.
   */
  secret(document: unknown, text: string, lost: string): Promise<void> {
    return writeSecret(this.#text(document, text), lost);
  }

  /** Prints one document. People are shown `shown` instead if it is given. */
  answer(document: object, { shown = document, ...how }: Shown & { readonly shown?: object } = {}): void {
    this.result(document, this.json ? '' : documentText(shown, { ...how, ...terminal() }));
  }

  /** Prints one line of a list on standard output. Resolves when the reader can take more. */
  async line(document: unknown, text: string): Promise<void> {
    this.#rows += 1;
    await this.#write([this.json ? JSON.stringify(document) : text]);
  }

  /** Prints a document of a list. `id` is the noun that its member of that name refers to. People are shown `shown` instead if it is given. */
  async row(document: object, { id, shown = document }: Row = {}): Promise<void> {
    if (this.json) return this.line(document, '');
    if (this.#csv !== undefined) return this.#record(document, this.#csv);
    this.#rows += 1;
    const isFirst = this.#list === undefined;
    this.#list ??= new ListText({ id, ...terminal() });
    this.#gathered.push(shown);
    if (isFirst) this.#gathering = setTimeout(() => void this.#printGathered(), GATHERED_MS);
    if (this.#gathering === undefined || this.#gathered.length === GATHERED) await this.#printGathered();
  }

  /** Prints the documents that are still gathered, and removes the progress line. */
  async end(): Promise<void> {
    this.#clearProgress();
    await this.#printGathered();
  }

  /** Prints one line on standard error: notes and faults are never part of the result. */
  note(line: string): void {
    this.#clearProgress();
    process.stderr.write(`${printableLine(withoutKeys(line))}\n`);
  }

  /** Shows how far the work is, on a line of standard error that the next one overwrites. Only a terminal shows it. */
  progress(text: string): void {
    const nowMs = Date.now();
    if (!process.stderr.isTTY || nowMs - this.#progressAtMs < PROGRESS_EVERY_MS) return;
    this.#progressAtMs = nowMs;
    this.#hasProgress = true;
    process.stderr.write(CLEAR_LINE + text);
  }

  #clearProgress(): void {
    if (this.#hasProgress) process.stderr.write(CLEAR_LINE);
    this.#hasProgress = false;
  }

  async #printGathered(): Promise<void> {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    const lines = this.#gathered.length === 0 ? [] : (this.#list?.linesOf(this.#gathered) ?? []);
    this.#gathered = [];
    if (lines.length > 0) await this.#write(lines);
  }

  async #write(lines: readonly string[]): Promise<void> {
    await this.#print(lines.map((line) => `${printableLine(line)}\n`).join(''));
  }

  async #print(text: string): Promise<void> {
    this.#clearProgress();
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
  }

  /** Prints the names of the columns if none were printed yet. */
  async header(): Promise<void> {
    if (this.#csv !== undefined && this.#rows === 0) await this.#print(csvRecord(this.#csv));
  }

  async #record(document: object, columns: readonly string[]): Promise<void> {
    await this.header();
    this.#rows += 1;
    await this.#print(csvRecord(columns.map((name) => (document as Record<string, unknown>)[name])));
  }

  #text(document: unknown, text: string): string {
    return `${printable(this.json ? JSON.stringify(document) : text)}\n`;
  }
}

/** The width of the terminal. Piped output has no limit. */
function terminal(): { readonly width?: number } {
  return process.stdout.isTTY ? { width: process.stdout.columns } : {};
}

function writeSecret(text: string, lost: string): Promise<void> {
  const { stdout } = process;
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void => reject(new FuelError('OUTPUT_LOST', lost, { cause }));
    // The other listeners would end the process quietly if the pipe is closed.
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
 * Aborts at the first SIGINT, SIGTERM or SIGHUP, so that the command can stop cleanly. A second SIGINT or SIGTERM ends the
 * process. SIGHUP does not: a closed terminal sends it more than once, from the kernel and from the shell.
 */
export function abortOnInterrupt(): AbortSignal {
  const interrupted = new AbortController();
  const abort = (): void => interrupted.abort();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, abort);
  process.on('SIGHUP', abort);
  return interrupted.signal;
}
