import type { AttemptOutcome } from '../queue/delivery-queue.ts';

export interface SendRequest {
  readonly url: string;
  /** Header names in the form they are sent. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface SendResult {
  readonly outcome: AttemptOutcome;
  /** The whole attempt, name look-up included. */
  readonly durationMs: number;
  /** The part of it in which a step of the receiver waited for this process. */
  readonly lateMs: number;
}

/** Makes one attempt. Never rejects: whatever goes wrong is an outcome. */
export interface Sender {
  send(request: SendRequest): Promise<SendResult>;
  close(): Promise<void>;
}
