import { describe, expect, test } from 'vitest';
import { type Choice, Pace, type Slot } from '../../../src/push/pace/pace.ts';
import type { AttemptOutcome } from '../../../src/push/queue/delivery.ts';
import { answered, SUCCESS, TIMEOUT } from '../../support/deliveries/deliveries.ts';
import { sentIn } from '../../support/deliveries/push.ts';

const ALL = 512;
/** The most of one webhook. */
const WIDE = 32;
const range = (count: number) => Array.from({ length: count }, (_, n) => n);

/** Webhooks `<host>-<anything>`, and a clock that tests move. */
class Machine {
  readonly pace: Pace;
  nowMs = 0;
  perSecond = Infinity;
  connections = Infinity;
  foreign = '';
  refused = '';
  refusedUntilMs = 0;
  urlOf: (prefix: string) => string | undefined = (prefix) => `https://${prefix.split('-')[0]}.example/`;

  constructor() {
    this.pace = new Pace({
      owners: { owns: (host) => host !== this.foreign },
      sender: {
        openConnections: () => this.connections,
        proxyWaitMs: (host) => (host === this.refused ? this.refusedUntilMs - this.nowMs : 0),
      },
    });
  }

  /** Asks what may start of these lanes, each with so many due. */
  choose(prefixes: readonly string[], count = Infinity): Choice {
    const { perSecond } = this;
    const wanted = prefixes.map((prefix) => ({ prefix, count, url: this.urlOf(prefix), perSecond }));
    return this.pace.choose(wanted, this.nowMs);
  }

  /** How much of a lane may start. */
  room(prefix: string): number {
    return this.choose([prefix]).chosen.get(prefix) ?? 0;
  }

  /** Starts what may start of these lanes, each with more due than it can get. */
  claim(...prefixes: readonly string[]): Slot[] {
    const started: Slot[] = [];
    for (;;) {
      const some = this.start(this.choose(prefixes));
      if (some.length === 0) return started;
      started.push(...some);
    }
  }

  /** As `claim`, of a lane with one delivery due. */
  one(prefix: string): Slot[] {
    return this.start(this.choose([prefix], 1));
  }

  start({ chosen }: Choice): Slot[] {
    return [...chosen].flatMap(([prefix, count]) =>
      range(count).map(() => this.pace.start(prefix, this.nowMs)),
    );
  }

  end(slots: readonly Slot[], outcome: AttemptOutcome, askedMs: number | null = null, answerMs = 10): void {
    for (const slot of slots) this.pace.end(slot, this.nowMs, { result: sentIn(answerMs, outcome), askedMs });
  }

  /** Lets the lanes answer until they have their full width, and a moment ago once more. */
  warm(...prefixes: readonly string[]): void {
    for (let round = 0; round < 40; round++) {
      const slots = prefixes.map((prefix) => this.claim(prefix));
      this.nowMs += 20;
      for (const each of slots) this.end(each, SUCCESS);
    }
  }
}

describe('a lane', () => {
  test('has one attempt under way at first, and 32 when its receiver answers quickly', () => {
    const m = new Machine();
    expect(m.claim('a')).toHaveLength(1);
    const proven = new Machine();
    proven.warm('a');
    expect(proven.claim('a')).toHaveLength(WIDE);
  });

  test('has two while its last attempts failed, and one success ends that', () => {
    const m = new Machine();
    m.warm('a');
    m.end(m.claim('a'), answered(500));
    const two = m.claim('a');
    expect(two).toHaveLength(2);
    m.end(two, SUCCESS);
    expect(m.claim('a').length).toBeGreaterThan(2);
  });

  test('gets no more than the operator allows a second, and its next moment is known', () => {
    const m = new Machine();
    m.perSecond = 4;
    m.end(m.claim('a'), SUCCESS);
    m.nowMs = 100;
    const { chosen, waitMs } = m.choose(['a']);
    expect(chosen).toEqual(new Map());
    m.nowMs += waitMs;
    expect(m.nowMs).toBeGreaterThan(200);
    expect(m.claim('a')).toHaveLength(1);
  });

  test('whose receiver asks to wait gets nothing until then, and others do', () => {
    const m = new Machine();
    m.end(m.claim('a-1'), answered(429), 30_000);
    expect(m.claim('a-1')).toEqual([]);
    const other = m.claim('a-2');
    expect(other).toHaveLength(1);
    m.end(other, SUCCESS);
    expect(m.choose(['a-1'])).toMatchObject({ chosen: new Map(), waitMs: 30_000 });
    m.nowMs += 30_000;
    expect(m.claim('a-1')).toHaveLength(1);
  });

  test('is not failing because it was asked to wait', () => {
    const m = new Machine();
    m.warm('a');
    for (const _ of range(3)) {
      m.end(m.claim('a').slice(0, 1), answered(429), 0);
      m.nowMs += 1;
    }
    m.end(m.claim('a'), SUCCESS);
    expect(m.room('a')).not.toBe(2);
  });

  test('that another process works on gets nothing, and is looked at again after a second', () => {
    const m = new Machine();
    m.foreign = 'https://a.example';
    expect(m.choose(['a'])).toMatchObject({ chosen: new Map(), waitMs: 1_000 });
    m.foreign = '';
    expect(m.claim('a')).toHaveLength(1);
  });

  test('whose host the proxy does not reach gets nothing until the wait is over, and the others are served', () => {
    const m = new Machine();
    m.refused = 'https://a.example';
    m.refusedUntilMs = 400;
    expect(m.choose(['a'])).toMatchObject({ chosen: new Map(), waitMs: 400 });
    expect(m.claim('b')).toHaveLength(1);
    m.nowMs = 400;
    expect(m.claim('a')).toHaveLength(1);
  });

  test('whose URL changes is paced by the new host', () => {
    const m = new Machine();
    m.urlOf = () => 'https://a.example/';
    m.warm('x');
    const before = m.claim('x');
    expect(before).toHaveLength(WIDE);
    m.urlOf = () => 'https://b.example/';
    expect(m.room('x')).toBe(0); // 32 of it are under way
    m.end(before, SUCCESS);
    expect(m.room('x')).toBe(1);
  });

  test('without a URL has a pace of its own', () => {
    const m = new Machine();
    m.urlOf = () => undefined;
    expect(m.claim('a', 'b')).toHaveLength(2);
  });
});

describe('a host', () => {
  test('gives its room to each of its lanes in turn', () => {
    const m = new Machine();
    const turns: string[] = [];
    for (const _ of range(9)) {
      const slots = m.claim('a-1', 'a-2', 'a-3');
      for (const { lane } of slots) turns.push(lane.prefix);
      m.nowMs += 1;
      m.end(slots, answered(503)); // so that it stays at one
    }
    expect(new Set(turns.slice(0, 3)).size).toBe(3);
    for (const prefix of ['a-1', 'a-2', 'a-3'])
      expect(turns.filter((turn) => turn === prefix)).toHaveLength(3);
  });

  test('gives a webhook that gets no answer, while others of it do, no room of theirs', () => {
    const m = new Machine();
    m.warm('a-1');
    for (const _ of range(2)) {
      const dead = m.one('a-2');
      const well = m.one('a-1');
      m.nowMs += 250;
      m.end(well, SUCCESS);
      m.nowMs += 250;
      m.end(dead, TIMEOUT, null, 500);
      m.end(m.one('a-1'), SUCCESS);
    }
    const dead = m.claim('a-2');
    expect(dead).toHaveLength(1);
    const before = m.room('a-1');
    expect(before).toBeGreaterThan(1);
    m.end(dead, TIMEOUT, null, 500);
    expect(m.room('a-1')).toBe(before);
  });

  test('that answers nobody has one attempt under way, whichever webhook it is', () => {
    const m = new Machine();
    m.warm('a-1', 'a-2');
    m.end([...m.claim('a-1'), ...m.claim('a-2')], TIMEOUT, null, 500);
    m.nowMs += 500;
    expect(m.claim('a-1', 'a-2', 'a-3')).toHaveLength(1);
  });

  test('makes few connections at once, however many requests it could have under way', () => {
    const m = new Machine();
    m.warm('a');
    m.connections = 3;
    expect(m.claim('a')).toHaveLength(4);
  });
});

describe('in all', () => {
  test('one choice takes at most a hundred deliveries, and no more than there is room for', () => {
    const m = new Machine();
    const quick = range(20).map((n) => `q${n}`);
    m.warm(...quick);
    const claims = range(7).map(() => m.start(m.choose(quick)).length);
    expect(claims).toEqual([100, 100, 100, 100, 100, ALL - 500, 0]);
    expect(m.pace.isFull).toBe(true);
  });

  test('new and slow hosts leave a quarter to quick ones, and failing webhooks a half', () => {
    const m = new Machine();
    const failing = range(300).map((n) => `f${n}`);
    for (const _ of range(2)) {
      for (const prefix of failing) m.end(m.claim(prefix), answered(500), null, 300);
    }
    m.warm('quick-1');
    expect(m.claim(...failing)).toHaveLength(ALL / 2);
    expect(m.claim(...range(300).map((n) => `n${n}`))).toHaveLength(ALL / 4);
    expect(m.claim('quick-1')).toHaveLength(WIDE);
  });

  test('a lane gets no more than it wants, and leaves the rest to the others of its host', () => {
    const m = new Machine();
    m.warm('a-1', 'a-2');
    const { chosen } = m.pace.choose(
      [3, 40].map((count, n) => ({ prefix: `a-${n + 1}`, count, url: m.urlOf('a'), perSecond: Infinity })),
      m.nowMs,
    );
    expect(Object.fromEntries(chosen)).toEqual({ 'a-1': 3, 'a-2': WIDE });
  });

  test('a choice reserves nothing: the same question has the same answer until something starts', () => {
    const m = new Machine();
    const first = m.choose(['a-1', 'a-2']);
    expect(m.choose(['a-1', 'a-2'])).toEqual(first);
    m.start(first);
    expect(m.choose(['a-1', 'a-2']).chosen).toEqual(new Map());
  });

  test('a place that ends without an attempt is free again, and changes nothing else', () => {
    const m = new Machine();
    const [slot] = m.claim('a');
    expect(m.claim('a')).toEqual([]);
    m.pace.end(slot as Slot, m.nowMs);
    expect(m.claim('a')).toHaveLength(1);
  });

  test('what was learned of a receiver is forgotten ten minutes after its last attempt, not before', () => {
    const m = new Machine();
    m.end(m.claim('a'), SUCCESS);
    m.end(m.claim('a').slice(0, 1), answered(429), 60_000); // one a minute
    /** True if nothing more may start right after an attempt. */
    const learned = (): boolean => {
      m.choose([]);
      m.end(m.claim('a'), SUCCESS);
      return m.claim('a').length === 0;
    };
    m.nowMs += 500_000;
    expect(learned()).toBe(true);
    m.nowMs += 700_000;
    expect(learned()).toBe(false);
  });

  test('an attempt knows how many others were under way at its host', () => {
    const m = new Machine();
    m.warm('a');
    expect(m.claim('a').map(({ others }) => others)).toEqual(range(WIDE));
  });
});
