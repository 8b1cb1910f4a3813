import type { IncomingHttpHeaders } from 'node:http';
import { type Dispatcher, errors } from 'undici';
import type { AttemptOutcome, FailureKind, ReceiverAnswer } from '../queue/delivery.ts';
import { errorDetail } from './connect.ts';
import { keepIdleMs, type ReceiverConnection } from './receiver-connection.ts';

/** Of one answer: status lines, headers, informational answers and body together. More than any receiver needs. */
const MAX_ANSWER_BYTES = 256 * 1024;
const MAX_INFORMATIONAL = 20;
const MAX_BODY_BYTES = 4 * 1024;
const MAX_HEADER_BYTES = 8 * 1024;

export interface ExchangeResult {
  /** False: the connection closed before a byte of the request was written. */
  readonly sent: boolean;
  readonly outcome: AttemptOutcome;
}

/**
 * One request and its answer, on one connection. A receiver that sends more than the limits is cut off, so that it
 * does not delay others; what was received until then decides the attempt.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #connection: ReceiverConnection;
  readonly #ended = Promise.withResolvers<ExchangeResult>();
  #sent = false;
  #informational = 0;
  /** What the connection had received before this answer. */
  #bytesBefore = 0;
  #reader: AnswerReader | undefined;
  #answeredAtBytes: number | undefined;

  constructor(connection: ReceiverConnection) {
    this.#connection = connection;
  }

  /** Settles when the answer is complete or the connection failed; never rejects. */
  run(
    path: string,
    request: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
  ): Promise<ExchangeResult> {
    const { headers, body } = request;
    this.#connection.client.dispatch({ method: 'POST', path, headers: { ...headers }, body }, this);
    return this.#ended.promise;
  }

  /** What has arrived so far; `null` before the answer's headers are complete. */
  answer(): ReceiverAnswer | null {
    return this.#reader?.answer() ?? null;
  }

  /** What the connection had received when the answer's headers were complete, or has until then. */
  get bytesUntilAnswer(): number {
    return this.#answeredAtBytes ?? this.#connection.socket.bytesRead;
  }

  onRequestStart(): void {
    this.#sent = true;
    const { socket } = this.#connection;
    this.#bytesBefore = socket.bytesRead;
    // After the client's own listener, which has read the bytes; not all bytes of an answer are reported below.
    socket.on('readable', this.#limitBytes);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders) {
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > MAX_INFORMATIONAL) this.#cutOff('more than 20 informational answers');
      return;
    }
    this.#reader = new AnswerReader(status, headers);
    this.#answeredAtBytes = this.#connection.socket.bytesRead;
    const keepAlive = headers['keep-alive'];
    this.#connection.keepIdleMs = keepIdleMs(typeof keepAlive === 'string' ? keepAlive : undefined);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#reader?.read(chunk);
  }

  onResponseEnd(): void {
    const answer = this.answer();
    const reset = this.#connection.socket.errored;
    if (answer === null) this.#fail('protocol', 'the answer has no status');
    // An answer that ends with its connection is complete only when that was closed properly.
    else if (reset !== null) this.#fail('cut', errorDetail(reset));
    else this.#judge(answer);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(failureKind(error), errorDetail(error));
  }

  #limitBytes = (): void => {
    if (this.#connection.socket.bytesRead - this.#bytesBefore > MAX_ANSWER_BYTES) {
      this.#cutOff('an answer of more than 256 KiB');
    }
  };

  #cutOff(what: string): void {
    const answer = this.answer();
    if (answer === null) this.#fail('protocol', `the receiver sent ${what}`);
    else this.#judge(answer);
    this.#connection.socket.destroy();
  }

  #judge(answer: ReceiverAnswer): void {
    if (answer.status >= 200 && answer.status < 300) this.#end({ ok: true, answer });
    else this.#fail('status', `the receiver answered ${answer.status}`);
  }

  #fail(kind: FailureKind, detail: string): void {
    this.#end({ ok: false, kind, detail, answer: this.answer() });
  }

  #end(outcome: AttemptOutcome): void {
    this.#connection.socket.off('readable', this.#limitBytes);
    this.#ended.resolve({ sent: this.#sent, outcome });
  }
}

const PROTOCOL_CODES = new Set(['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);
const PROTOCOL_MESSAGES = new Set(['bad response', 'bad upgrade']);

/** Why an answer is not complete: a connection that was cut, unless the error says otherwise. */
function failureKind(error: Error & { readonly code?: string }): FailureKind {
  const { code = '', message } = error;
  // The parser's errors have no code. An early end is one of them, but no fault of the protocol.
  if (error instanceof errors.HTTPParserError) return message.includes('EOF') ? 'cut' : 'protocol';
  if (PROTOCOL_CODES.has(code) || PROTOCOL_MESSAGES.has(message)) return 'protocol';
  // TLS 1.3 reports some refusals, such as a missing client certificate, only after the handshake.
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO') return 'tls';
  return 'cut';
}

/** Keeps the status, up to 8 KiB of headers and the first 4 KiB of the body of an answer; drops the rest. */
class AnswerReader {
  readonly #status: number;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(status: number, headers: Readonly<Record<string, string | string[] | undefined>>) {
    this.#status = status;
    this.#headers = keptHeaders(headers);
  }

  read(chunk: Buffer): void {
    if (this.#bytes >= MAX_BODY_BYTES) return;
    // A copy: the chunk is part of a larger buffer, which would stay in memory with it.
    const kept = Buffer.from(chunk.subarray(0, MAX_BODY_BYTES - this.#bytes));
    this.#chunks.push(kept);
    this.#bytes += kept.length;
  }

  /** What has arrived so far, without a character that the limit cuts in two. */
  answer(): ReceiverAnswer {
    const bytes = Buffer.concat(this.#chunks);
    const body = bytes.length === 0 ? '' : new TextDecoder().decode(bytes, { stream: true });
    return { status: this.#status, headers: this.#headers, body };
  }
}

function keptHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  let left = MAX_HEADER_BYTES;
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const text = Array.isArray(value) ? value.join(', ') : value;
    left -= Buffer.byteLength(name) + Buffer.byteLength(text);
    if (left < 0) break;
    kept[name] = text;
  }
  return kept;
}
