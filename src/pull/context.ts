import type { Middleware, ParameterizedContext } from 'koa';
import type { Caller } from '../accounts/caller.ts';
import { type Answer, type Refusal, type RefusalCode, refusalAnswer } from './answers.ts';

/** What is known of one request; the steps fill it in. */
export interface RequestState {
  requestId: string;
  path: string;
  /** The text after `?`. */
  rawQuery: string;
  caller?: Caller;
  /** To be called when check 3 is passed. */
  keyAccepted?: () => void;
  code?: RefusalCode;
  rows?: number;
}

export type Context = ParameterizedContext<RequestState>;
export type Step = Middleware<RequestState>;

export function answer(ctx: Context, given: Answer): void {
  ctx.status = given.status;
  ctx.set(given.headers);
  ctx.body = given.body;
}

export function refuse(ctx: Context, refusal: Refusal): void {
  ctx.state.code = refusal.code;
  answer(ctx, refusalAnswer(refusal, ctx.state.requestId));
}
