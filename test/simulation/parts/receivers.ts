import { createHmac } from 'node:crypto';
import type { Chance } from '../core/chance.ts';
import { Capacity, PACED_MOODS, type PacedMood } from './capacity.ts';
import type { Internet, ReceivedRequest, Reply } from './network.ts';

/** How a receiver behaves for a while. */
type Mood =
  | 'well'
  | PacedMood
  | 'slow'
  | 'fails'
  | 'late'
  | 'hangs'
  | 'cuts'
  | 'lies'
  | 'redirects'
  | 'refuses'
  | 'silent'
  | 'unknown name'
  | 'no answer of its name server'
  | 'a private address'
  | 'the certificate of another';

export const BAD_MOODS: readonly Mood[] = [
  'fails',
  'late',
  'hangs',
  'cuts',
  'lies',
  'redirects',
  'refuses',
  'silent',
  'unknown name',
  'no answer of its name server',
  'a private address',
  'the certificate of another',
];

/** The moods in which a receiver accepts everything at its own pace. */
export const GOOD_MOODS: readonly Mood[] = ['well', 'slow', ...PACED_MOODS];

/** A received request, and if the receiver would say that it accepted it. */
export interface Seen {
  /** The process that sent it. */
  readonly from: string;
  readonly sentAtMs: number;
  readonly atMs: number;
  readonly host: string;
  readonly address: string;
  readonly deliveryId: string;
  readonly transactionId: number | undefined;
  readonly body: string;
  readonly signature: string;
  readonly isGenuine: boolean;
  /** True if it was answered 2xx in time, as far as the receiver knows. */
  readonly isTaken: boolean;
  /** True if it was answered 2xx too late. */
  readonly isLate: boolean;
  /** The wait that its answer asked for. */
  readonly asked?: { readonly untilMs: number; readonly isDate: boolean } | undefined;
  /** The time at which the sender got the answer; missing if it no longer waited. */
  heardAtMs?: number;
}

export class Receiver {
  readonly host: string;
  readonly capacity: Capacity;
  address: string;
  /** The time at which it moved to its current address. */
  movedAtMs = 0;
  secret: string | undefined;
  readonly seen: Seen[] = [];
  /** Its moods and moves, in order. */
  readonly #changes: { readonly atMs: number; readonly mood: Mood; readonly isMove: boolean }[] = [];

  constructor(host: string, address: string, capacity: Capacity) {
    this.host = host;
    this.address = address;
    this.capacity = capacity;
  }

  get mood(): Mood {
    return this.#changes.at(-1)?.mood ?? 'well';
  }

  become(mood: Mood, atMs: number): void {
    this.#changes.push({ atMs, mood, isMove: false });
  }

  move(address: string, atMs: number): void {
    this.address = address;
    this.movedAtMs = atMs;
    this.#changes.push({ atMs, mood: this.mood, isMove: true });
  }

  /** Returns the moods in that time; `undefined` if one of them is bad, or if it moved. */
  goodMoods(fromMs: number, toMs: number): readonly Mood[] | undefined {
    const meanwhile = this.#changes.filter(({ atMs }) => fromMs < atMs && atMs <= toMs);
    const moods = [this.#changes.findLast(({ atMs }) => atMs <= fromMs)?.mood ?? 'well'];
    for (const { mood } of meanwhile) if (!moods.includes(mood)) moods.push(mood);
    const isGood = moods.every((mood) => GOOD_MOODS.includes(mood));
    return isGood && !meanwhile.some(({ isMove }) => isMove) ? moods : undefined;
  }
}

/** How long an old address may be used, including an attempt under way in a slow process. */
const MAX_NAME_AGE_MS = 60_000;
const PRIVATE = '10.0.0.5';
const LIMIT_MS = 500;

/** The receivers of all customers, and the names by which they are found. */
export class Receivers implements Internet {
  readonly byHost = new Map<string, Receiver>();
  readonly #chance: Chance;
  readonly #onSeen: (receiver: Receiver, seen: Seen) => void;
  /** Connections to addresses that must never be called. */
  readonly forbidden: string[] = [];
  readonly #now: () => number;

  constructor(now: () => number, chance: Chance, onSeen: (receiver: Receiver, seen: Seen) => void) {
    this.#now = now;
    this.#chance = chance;
    this.#onSeen = onSeen;
  }

  add(host: string): Receiver {
    const receiver = new Receiver(host, this.newAddress(), new Capacity(this.#chance.fork(host)));
    if (this.#chance.is(0.5)) receiver.become(this.#chance.pick(PACED_MOODS), this.#now());
    this.byHost.set(host, receiver);
    return receiver;
  }

  newAddress(): string {
    return `93.184.${this.#chance.int(250)}.${1 + this.#chance.int(250)}`;
  }

  latencyMs(): number {
    return 1 + this.#chance.int(8);
  }

  handshakeMs(host: string): number {
    const receiver = this.byHost.get(host);
    return receiver?.capacity.handshakeMs(receiver.mood, this.#now()) ?? 0;
  }

  addresses(name: string): readonly string[] | undefined {
    const receiver = this.byHost.get(name);
    if (receiver === undefined || receiver.mood === 'unknown name') return [];
    if (receiver.mood === 'no answer of its name server') return undefined;
    if (receiver.mood === 'a private address')
      return this.#chance.is(0.5) ? [PRIVATE] : [receiver.address, PRIVATE];
    return [receiver.address];
  }

  accepts(host: string, address: string): 'yes' | 'refused' | 'silent' | 'other certificate' {
    if (address === PRIVATE) {
      this.forbidden.push(`${host} at ${address}`);
      return 'yes';
    }
    const receiver = this.byHost.get(host);
    if (receiver && receiver.address !== address && this.#now() > receiver.movedAtMs + MAX_NAME_AGE_MS)
      this.forbidden.push(`${host} at ${address}, from where it moved`);
    if (receiver === undefined || receiver.address !== address || receiver.mood === 'refuses')
      return 'refused';
    if (receiver.mood === 'silent') return 'silent';
    return receiver.mood === 'the certificate of another' ? 'other certificate' : 'yes';
  }

  receive(request: ReceivedRequest): Reply {
    const receiver = this.byHost.get(request.host);
    if (receiver === undefined) return { kind: 'hang' };
    const [reply, isTaken, asked] = this.#reply(receiver);
    const record = transactionIn(request.body);
    const { from, sentAtMs, atMs, host, address } = request;
    const seen: Seen = {
      from,
      sentAtMs,
      atMs,
      host,
      address,
      asked,
      deliveryId: request.headers['x-service-delivery'] ?? '',
      transactionId: record,
      body: request.body,
      signature: request.headers['x-service-signature'] ?? '',
      isGenuine: receiver.secret === undefined || isGenuine(request, receiver.secret),
      isTaken,
      isLate: !isTaken && asked === undefined && 'afterMs' in reply && reply.afterMs > LIMIT_MS,
    };
    receiver.seen.push(seen);
    this.#onSeen(receiver, seen);
    const onHeard = (): void => {
      seen.heardAtMs = this.#now();
    };
    return reply.kind === 'answer' ? { ...reply, onHeard } : reply;
  }

  #reply({ mood, capacity }: Receiver): [Reply, isTaken: boolean, Seen['asked']?] {
    const chance = this.#chance;
    const answer = (afterMs: number, status: string, headers = '', body = 'ok') => ({
      kind: 'answer' as const,
      afterMs,
      text: `HTTP/1.1 ${status}\r\ncontent-length: ${body.length}\r\n${headers}\r\n${body}`,
      thenClose: chance.is(0.1),
    });
    switch (mood) {
      case 'small':
      case 'busy':
      case 'full':
      case 'shut': {
        const { afterMs, status, headers, asked } = capacity.request(mood, this.#now());
        const reply = answer(afterMs, status, headers, '');
        const isTaken = asked === undefined && afterMs <= LIMIT_MS;
        return [mood === 'shut' ? { ...reply, thenClose: true } : reply, isTaken, asked];
      }
      case 'slow':
        return [answer(chance.between(20, LIMIT_MS - 80), '204 No Content', '', ''), true];
      case 'fails':
        return [
          answer(5, chance.pick(['500 Oops', '503 Busy', '404 Not Found', '410 Gone', '429 Slow'])),
          false,
        ];
      case 'late':
        return [answer(chance.between(LIMIT_MS + 50, 3_000), '200 OK'), false];
      case 'hangs':
        return [{ kind: 'hang' }, false];
      case 'cuts':
        return [
          { kind: 'cut', afterMs: 5, text: 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf' },
          false,
        ];
      case 'lies':
        return [
          {
            kind: 'cut',
            afterMs: 5,
            text: chance.pick(['nonsense\r\n\r\n', 'HTTP/1.1 200', '\u0000\u0001']),
          },
          false,
        ];
      case 'redirects':
        return [answer(5, '302 Found', 'location: https://10.0.0.5/\r\n'), false];
      default:
        return [
          answer(chance.between(1, 20), chance.pick(['200 OK', '201 Created', '204 No Content']), '', ''),
          true,
        ];
    }
  }
}

function transactionIn(body: string): number | undefined {
  try {
    return JSON.parse(body)?.data?.transaction?.id;
  } catch {
    return undefined;
  }
}

function isGenuine({ headers, body, atMs }: ReceivedRequest, secret: string): boolean {
  const [, t = '', v1 = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers['x-service-signature'] ?? '') ?? [];
  const isFresh = Math.abs(atMs - Number(t) * 1000) < 60_000;
  return isFresh && createHmac('sha256', secret).update(`${t}.${body}`).digest('hex') === v1;
}
