import type { ReceiverAnswer } from '../queue/delivery.ts';

// The limits of one answer with its informational answers: more than any receiver needs.
const MAX_INFORMATIONAL = 20;
const MAX_BYTES = 256 * 1024;
/** The most times that bytes may arrive. Each TLS record arrives by itself, however short it is. */
const MAX_PIECES = 1_000;
/** A thousand chunks and some headers: a chunk has two lines. */
const MAX_LINES = 2_100;
const MAX_LINE_BYTES = 4 * 1024;
const MAX_KEPT_HEADER_BYTES = 8 * 1024;
const MAX_KEPT_BODY_BYTES = 4 * 1024;
const MAX_SHOWN = 60;

const START = 'HTTP/1.';
const STATUS_LINE = /^HTTP\/1\.(\d) +([1-9]\d\d)(?: |$)/;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~\w]+$/;
const CHUNK_SIZE = /^\s*([\da-f]+)\s*(?:;|$)/i;
/** Answers with these statuses have no body, whatever their headers say. */
const BODILESS = new Set([204, 205, 304]);
const LINE_FEED = 0x0a;

/** A receiver sent something that is not an answer; the message says why. */
export class NoAnswerError extends Error {}

/** A receiver sent more than an answer may cost; the message says what. What has arrived until then counts. */
export class TooMuchError extends Error {}

/** A part of the reader. It yields when it needs more bytes. */
type Reading<T> = Generator<undefined, T, undefined>;

/**
 * Reads the answer to one HTTP/1.1 request. Few receivers are tested with more than one client, so it accepts, as curl
 * does, every answer that has only one possible meaning. After an irregular answer the connection is not reusable.
 */
export class AnswerReader {
  reusable = true;
  hasHeaders = false;
  /** True if the end of the connection completes the answer. */
  endsWithConnection = false;
  readonly #reading = this.#readAnswer();
  #bytes = Buffer.alloc(0);
  /** How much of `#bytes` was read. */
  #at = 0;
  #received = 0;
  #pieces = 0;
  #lines = 0;
  #status = 0;
  #headers = new Map<string, string>();
  readonly #kept: Buffer[] = [];
  #bodyBytes = 0;

  /** Reads bytes that have arrived. Returns true once the answer is complete. Throws `NoAnswerError` and `TooMuchError`. */
  read(bytes: Buffer<ArrayBuffer>): boolean {
    this.#bytes = bytes;
    this.#at = 0;
    const isComplete = this.#reading.next().done === true;
    if (this.#at < bytes.length) this.reusable = false;
    this.#received += bytes.length;
    this.#pieces++;
    if (!isComplete && this.#received > MAX_BYTES) throw new TooMuchError('more than 256 KiB');
    if (!isComplete && this.#pieces > MAX_PIECES) throw new TooMuchError('more than 1,000 pieces');
    return isComplete;
  }

  header(name: string): string | undefined {
    return this.#headers.get(name);
  }

  /** The answer as far as it has arrived, with the first of its headers and body; `null` before the status. */
  answer(): ReceiverAnswer | null {
    if (this.#status === 0) return null;
    return { status: this.#status, headers: keptHeaders(this.#headers), body: this.#keptBody() };
  }

  /** The beginning of a text, or the number of bytes that have arrived of a compressed one. */
  #keptBody(): string {
    const encoding = this.header('content-encoding') ?? 'identity';
    if (encoding.toLowerCase() !== 'identity' && this.#bodyBytes > 0)
      return `(${this.#bodyBytes} bytes of ${encoding})`;
    // In streaming mode the decoder leaves out a character that the limit cuts in two.
    return new TextDecoder().decode(Buffer.concat(this.#kept), { stream: true });
  }

  *#readAnswer(): Reading<void> {
    let minorVersion = yield* this.#readHead();
    for (let informational = 1; this.#status < 200; informational++) {
      if (this.#status === 101)
        throw new NoAnswerError('the receiver switched protocols without being asked');
      this.#status = 0;
      if (informational > MAX_INFORMATIONAL) throw new TooMuchError('more than 20 informational answers');
      minorVersion = yield* this.#readHead();
    }
    this.hasHeaders = true;
    const connection = listed(this.header('connection'));
    this.reusable = minorVersion === '0' ? connection.includes('keep-alive') : !connection.includes('close');
    yield* this.#readBody();
  }

  /** Returns the minor version. */
  *#readHead(): Reading<string | undefined> {
    this.#headers.clear();
    let line = '';
    while (line === '') line = yield* this.#readLine(START);
    const [, minorVersion, status] = STATUS_LINE.exec(line) ?? [];
    if (status === undefined) throw new NoAnswerError(`not a status line of HTTP/1.1: ${shown(line)}`);
    this.#status = Number(status);
    let last = '';
    for (line = yield* this.#readLine(); line !== ''; line = yield* this.#readLine())
      last = this.#takeHeader(line, last);
    return minorVersion;
  }

  #takeHeader(line: string, last: string): string {
    const isContinued = /^[ \t]/.test(line);
    const colon = isContinued ? -1 : line.indexOf(':');
    const name = isContinued ? last : line.slice(0, Math.max(colon, 0)).trimEnd().toLowerCase();
    if (!HEADER_NAME.test(name)) throw new NoAnswerError(`not a header: ${shown(line)}`);
    const value = line.slice(colon + 1).trim();
    const before = this.#headers.get(name);
    this.#headers.set(name, before === undefined ? value : `${before}${isContinued ? ' ' : ', '}${value}`);
    return name;
  }

  /** Follows RFC 9112, section 6.3. */
  *#readBody(): Reading<void> {
    const length = this.header('content-length');
    const encoding = this.header('transfer-encoding');
    if (BODILESS.has(this.#status)) {
      // A body that the headers announce may follow nevertheless.
      if (encoding !== undefined || Number(length ?? 0) !== 0) this.reusable = false;
    } else if (listed(encoding).at(-1) === 'chunked') {
      if (length !== undefined) this.reusable = false;
      yield* this.#readChunks();
    } else if (encoding === undefined && length !== undefined) {
      const [bytes = Number.NaN, ...others] = listed(length).map((text) =>
        /^\d+$/.test(text) ? Number(text) : Number.NaN,
      );
      if (Number.isNaN(bytes) || others.some((other) => other !== bytes))
        throw new NoAnswerError(`a Content-Length that is not one number: ${shown(length)}`);
      if (others.length > 0) this.reusable = false;
      yield* this.#readBytes(bytes);
    } else {
      this.reusable = false;
      this.endsWithConnection = true;
      yield* this.#readBytes(Number.POSITIVE_INFINITY);
    }
  }

  *#readChunks(): Reading<void> {
    for (;;) {
      const line = yield* this.#readLine();
      const [, size] = CHUNK_SIZE.exec(line) ?? [];
      if (size === undefined) throw new NoAnswerError(`not the size of a chunk: ${shown(line)}`);
      if (Number.parseInt(size, 16) === 0) break;
      yield* this.#readBytes(Number.parseInt(size, 16));
      const end = yield* this.#readLine();
      if (end !== '') throw new NoAnswerError(`a chunk is longer than its size: ${shown(end)}`);
    }
    while ((yield* this.#readLine()) !== ''); // trailers
  }

  /** Reads a line. If it is not empty, it must begin with `start`. */
  *#readLine(start = ''): Reading<string> {
    if (++this.#lines > MAX_LINES) throw new TooMuchError('more than 2,100 lines');
    for (let line = ''; ; yield) {
      const end = this.#bytes.indexOf(LINE_FEED, this.#at);
      const until = end < 0 ? this.#bytes.length : end;
      line += this.#bytes.toString('latin1', this.#at, until);
      this.#at = end < 0 ? until : end + 1;
      if (line.length > MAX_LINE_BYTES) throw new TooMuchError('a line of more than 4 KiB');
      if (line.trim() !== '' && !start.startsWith(line.slice(0, start.length)))
        throw new NoAnswerError(`not HTTP/1.1: ${shown(line)}`);
      if (end >= 0) return line.endsWith('\r') ? line.slice(0, -1) : line;
    }
  }

  *#readBytes(count: number): Reading<void> {
    for (let left = count; ; yield) {
      const part = this.#bytes.subarray(this.#at, Math.min(this.#bytes.length, this.#at + left));
      this.#at += part.length;
      left -= part.length;
      // This is a copy, since a part would keep all that has arrived in memory.
      const kept = Buffer.from(part.subarray(0, Math.max(0, MAX_KEPT_BODY_BYTES - this.#bodyBytes)));
      if (kept.length > 0) this.#kept.push(kept);
      this.#bodyBytes += part.length;
      if (left === 0) return;
    }
  }
}

/** The members of a list header, in lower case. */
function listed(value = ''): readonly string[] {
  const members = value.toLowerCase().split(',');
  return members.map((member) => member.trim()).filter((member) => member !== '');
}

/** The beginning of a receiver's text, in quotes and without control characters. */
function shown(text: string): string {
  return JSON.stringify(text.slice(0, MAX_SHOWN));
}

function keptHeaders(headers: ReadonlyMap<string, string>): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  let left = MAX_KEPT_HEADER_BYTES;
  for (const [name, value] of headers) {
    left -= Buffer.byteLength(name) + Buffer.byteLength(value);
    if (left < 0) break;
    kept[name] = value;
  }
  return kept;
}
