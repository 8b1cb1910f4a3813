import { world } from '../../base/world.ts';
import type { AttemptOutcome, FailureKind, ReceiverAnswer } from '../queue/delivery.ts';
import { AnswerReader, NoAnswerError, TooMuchError } from './answer-reader.ts';
import { errorDetail } from './connect.ts';
import { type ConnectionListener, keepIdleMs, type ReceiverConnection } from './connections.ts';

interface ExchangeResult {
  /** False if the connection closed before a byte of the request was written. */
  readonly sent: boolean;
  readonly outcome: AttemptOutcome;
}

interface ExchangeRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * One request and its answer, on one connection. A receiver that sends too much is cut off, so that it does not delay
 * others, and the attempt is judged by what has arrived.
 */
export class Exchange implements ConnectionListener {
  readonly #connection: ReceiverConnection;
  readonly #ended = Promise.withResolvers<ExchangeResult>();
  readonly #reader = new AnswerReader();
  #sent = false;
  #answeredAtBytes: number | undefined;

  constructor(connection: ReceiverConnection) {
    this.#connection = connection;
  }

  /** Settles when the answer is complete or the connection has failed. Rejects only because of a fault of the program. */
  run(path: string, request: ExchangeRequest): Promise<ExchangeResult> {
    const { socket, origin, used } = this.#connection;
    this.#connection.listener = this;
    socket.setTimeout(0);
    const send = (): void => {
      this.#sent = !socket.destroyed;
      if (this.#sent) socket.write(requestText(new URL(origin).host, path, request));
      else this.onClosed(new Error('the connection was closed'));
    };
    // If the connection was closed while it was idle, this becomes known in the next turn.
    if (used) world.setImmediate(send);
    else send();
    return this.#ended.promise;
  }

  /** True once the request was written. */
  get isSent(): boolean {
    return this.#sent;
  }

  /** The answer as far as it has arrived; `null` before its status. */
  answer(): ReceiverAnswer | null {
    return this.#reader.answer();
  }

  /** The bytes that the connection had received when the headers were complete; before that, all that it has received. */
  get bytesUntilAnswer(): number {
    return this.#answeredAtBytes ?? this.#connection.socket.bytesRead;
  }

  onBytes(bytes: Buffer<ArrayBuffer>): void {
    try {
      this.#read(bytes);
    } catch (error) {
      if (error instanceof TooMuchError) this.#judge(`the receiver sent ${error.message} before a status`);
      else if (error instanceof NoAnswerError) this.#fail('protocol', error.message);
      else this.#ended.reject(error);
      this.#connection.socket.destroy();
    }
  }

  #read(bytes: Buffer<ArrayBuffer>): void {
    if (!this.#sent) throw new NoAnswerError('the receiver sent something before the request');
    const isComplete = this.#reader.read(bytes);
    if (this.#reader.hasHeaders) this.#answeredAtBytes ??= this.#connection.socket.bytesRead;
    if (isComplete) this.#complete();
  }

  onClosed(error: (Error & { readonly code?: string }) | undefined): void {
    if (error !== undefined) this.#fail(isOfTls(error) ? 'tls' : 'cut', errorDetail(error));
    else if (this.#reader.endsWithConnection) this.#complete();
    else this.#fail('cut', 'the receiver closed the connection before its answer was complete');
  }

  #complete(): void {
    this.#connection.keepIdleMs = this.#reader.reusable ? keepIdleMs(this.#reader.header('keep-alive')) : 0;
    this.#judge('the answer has no status');
  }

  #judge(unanswered: string): void {
    const answer = this.answer();
    if (answer === null) this.#fail('protocol', unanswered);
    else if (answer.status >= 200 && answer.status < 300) this.#end({ ok: true, answer });
    else this.#fail('status', `the receiver answered ${answer.status}`);
  }

  #fail(kind: FailureKind, detail: string): void {
    this.#end({ ok: false, kind, detail, answer: this.answer() });
  }

  #end(outcome: AttemptOutcome): void {
    this.#connection.listener = undefined;
    this.#connection.used = true;
    this.#ended.resolve({ sent: this.#sent, outcome });
  }
}

function requestText(host: string, path: string, { headers, body }: ExchangeRequest): string {
  const lines = [`POST ${path} HTTP/1.1`, `host: ${host}`, 'connection: keep-alive'];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  return `${lines.join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** TLS 1.3 reports some refusals, such as a missing client certificate, only after the handshake. */
function isOfTls({ code = '' }: { readonly code?: string }): boolean {
  return code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO';
}
