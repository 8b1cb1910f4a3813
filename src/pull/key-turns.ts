import { refuse, type Step } from './answers.ts';

/** How many requests of one key are answered at a time. Their answers may all be kept until the client reads them. */
const MAX_UNDER_WAY = 8;

interface KeyTurns {
  underWay: number;
  /** What lets the waiting requests begin, the oldest first. */
  readonly waiting: Set<() => void>;
}

/**
 * Answers a few requests of one key at a time, until their answers have been handed to the connection completely; further
 * ones wait. So a key takes a bounded share of the stores and of the memory, however many connections it has. Requests
 * without a valid secret pass, since they cost neither.
 */
export function takeTurns(): Step {
  const keys = new Map<string, KeyTurns>();
  return async (ctx, next) => {
    const { caller } = ctx.state;
    if (!caller?.proven || caller.prefix === undefined) return next();
    const { prefix } = caller;
    const key = keys.get(prefix) ?? { underWay: 0, waiting: new Set() };
    keys.set(prefix, key);
    const { promise: turn, resolve: begin } = Promise.withResolvers<void>();
    if (key.underWay < MAX_UNDER_WAY) {
      key.underWay += 1;
      begin();
    } else key.waiting.add(begin);
    // `close` follows the end of the answer and the end of the connection.
    ctx.res.once('close', () => {
      if (key.waiting.delete(begin)) return begin();
      const [following] = key.waiting;
      if (following !== undefined) {
        key.waiting.delete(following);
        following();
      } else if (--key.underWay === 0) keys.delete(prefix);
    });
    await turn;
    if (ctx.res.closed) return refuse(ctx, { code: 'REQUEST_TIMEOUT' }); // nobody is left to read it
    await next();
  };
}
