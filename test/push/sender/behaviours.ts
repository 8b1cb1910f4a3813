import type { ReceivedRequest } from '../../support/deliveries/tls-receiver.ts';

/** The sender's judgement of an answer. */
interface Judgement {
  readonly ok: boolean;
  /** The reason why the attempt failed. */
  readonly kind?: string;
  readonly detail?: string | RegExp;
  /** Missing if the answer is not known. */
  readonly status?: number;
  readonly body?: string;
  /** True if the next request uses the same connection. */
  readonly kept: boolean;
}

export interface Behaviour {
  /** Completes "a receiver that answers". */
  readonly what: string;
  /** The bytes of its answer, or what it does with the request. */
  readonly answer: string | ((request: ReceivedRequest) => void);
  readonly judged: Judgement;
}

const OK = 'HTTP/1.1 200 OK\r\n';
const TWO = 'Content-Length: 2\r\n\r\nok';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const CHUNKS = '2\r\nok\r\n0\r\n\r\n';
const HINT = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n';
const KIB = 1024;

const SUCCESS: Judgement = { ok: true, status: 200, body: 'ok', kept: true };
const LAST_SUCCESS: Judgement = { ...SUCCESS, kept: false };

/** Writes each byte in a record of its own. */
export function drip(socket: ReceivedRequest['socket'], text: string): void {
  if (socket.destroyed || text === '') return;
  socket.write(text.slice(0, 1), 'latin1');
  setImmediate(() => drip(socket, text.slice(1)));
}

const closing =
  (text: string) =>
  ({ socket }: ReceivedRequest) =>
    void socket.end(text, 'latin1');
const resetting = (text: string) => (request: ReceivedRequest) =>
  void request.socket.write(text, () => request.reset());

function named(rows: readonly (readonly [string, Behaviour['answer']])[], judged: Judgement): Behaviour[] {
  return rows.map(([what, answer]) => ({ what, answer, judged }));
}

/** Whole answers, each in one piece. */
const REGULAR = named(
  [
    ['with a length', `${OK}${TWO}`],
    ['with a length between spaces', `${OK}Content-Length: \t 2  \r\n\r\nok`],
    ['in chunks', `${CHUNKED}${CHUNKS}`],
    ['in chunks with extensions and trailers', `${CHUNKED}2;a="b"\r\nok\r\n00\r\nX: y\r\n\r\n`],
    ['in chunks of another encoding', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n${CHUNKS}`],
    ['without a reason', `HTTP/1.1 200\r\n${TWO}`],
    ['in lines that end in a line feed alone', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    ['after an empty line', `\r\n${OK}${TWO}`],
    ['with a header that is continued', `${OK}X: a\r\n b\r\n${TWO}`],
    ['by HTTP/1.0, and stays open', `HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n${TWO}`],
    ['100 first', `HTTP/1.1 100 Continue\r\n\r\n${OK}${TWO}`],
    [
      '100 with a length, and 102',
      `HTTP/1.1 100\r\nContent-Length: 9\r\n\r\nHTTP/1.1 102 P\r\n\r\n${OK}${TWO}`,
    ],
    ['20 informational answers first', HINT.repeat(20) + OK + TWO],
    ['with two blanks before the status', `HTTP/1.1  200 OK\r\n${TWO}`],
    ['with a blank before a colon', `${OK}X : y\r\n${TWO}`],
    ['in chunks whose lines end in a line feed alone', `${CHUNKED}2\nok\n0\n\n`],
    ['with the offer of an upgrade', `${OK}Connection: Upgrade\r\nUpgrade: h2c\r\n${TWO}`],
  ],
  SUCCESS,
);

const LAST = named(
  [
    ['and announces to close', `${OK}Connection: X, Close\r\n${TWO}`],
    ['by HTTP/1.0', `HTTP/1.0 200 OK\r\n${TWO}`],
    ['with more than its length', `${OK}Content-Length: 2\r\n\r\nok, and more`],
    ['twice', `${OK}${TWO}${OK}${TWO}`],
    ['with a length beside chunks', `${OK}Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}`],
    ['with two lengths that are equal', `${OK}Content-Length: 2\r\n${TWO}`],
    ['with a list of equal lengths', `${OK}Content-Length: 2, 2\r\n\r\nok`],
    [
      'with a wrong length beside chunks',
      `${OK}Transfer-Encoding: chunked\r\nContent-Length: x\r\n\r\n${CHUNKS}`,
    ],
    ['until it closes', closing(`${OK}\r\nok`)],
    ['in an encoding that is not chunks until it closes', closing(`${OK}Transfer-Encoding: gzip\r\n\r\nok`)],
    ['and closes right away', closing(`${OK}${TWO}`)],
  ],
  LAST_SUCCESS,
);

const BODILESS: Behaviour[] = [204, 205, 304].flatMap((status) => {
  const judged = { ok: status < 300, status, body: '' };
  const head = `HTTP/1.1 ${status} None\r\n`;
  return [
    { what: `${status}`, answer: `${head}\r\n`, judged: { ...judged, kept: true } },
    { what: `${status} with bytes of a body`, answer: `${head}\r\nok`, judged: { ...judged, kept: false } },
    {
      what: `${status} with a length`,
      answer: `${head}Content-Length: 2\r\n\r\n`,
      judged: { ...judged, kept: false },
    },
    {
      what: `${status} as if in chunks`,
      answer: `${head}Transfer-Encoding: chunked\r\n\r\n`,
      judged: { ...judged, kept: false },
    },
  ];
});

const STATUSES: Behaviour[] = [
  ...[201, 202, 299].map((status) => ({ status, ok: true })),
  ...[300, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503, 600].map((status) => ({ status, ok: false })),
].map(({ status, ok }) => ({
  what: `${status}`,
  answer: `HTTP/1.1 ${status} Some\r\nLocation: /elsewhere\r\nContent-Length: 4\r\n\r\nsaid`,
  judged: {
    ok,
    status,
    body: 'said',
    kept: true,
    ...(ok ? {} : { kind: 'status', detail: `the receiver answered ${status}` }),
  },
}));

/** Answers of which the status is known, and that have more than one meaning or none. */
const AMBIGUOUS = named(
  [
    ['with different lengths', `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`],
    ['with a negative length', `${OK}Content-Length: -2\r\n\r\nok`],
    ['with two numbers as its length', `${OK}Content-Length: 2 2\r\n\r\nok`],
    ['with an empty length', `${OK}Content-Length:\r\n\r\nok`],
    ['with a header without a colon', `${OK}no colon\r\n${TWO}`],
    ['with a header without a name', `${OK}: no name\r\n${TWO}`],
    ['with a header whose name is none', `${OK}a\0b: c\r\n${TWO}`],
    ['in chunks without a size', `${CHUNKED}zz\r\n`],
    ['in a chunk that is longer than its size', `${CHUNKED}1\r\nab\r\n`],
    ['by switching protocols', 'HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'],
  ],
  { ok: false, kind: 'protocol', kept: false },
);

const NOT_HTTP = named(
  [
    ['by SSH', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['by HTTP/2', 'HTTP/2 200\r\n\r\n'],
    ['with a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['with a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['with a status below 100', 'HTTP/1.1 099 OK\r\n\r\n'],
  ],
  { ok: false, kind: 'protocol', kept: false },
);

const CUT = [
  ...named(
    [
      ['nothing and closes', closing('')],
      ['a part of its headers and closes', closing('HTTP/1.1 200 O')],
    ],
    { ok: false, kind: 'cut', kept: false },
  ),
  ...named(
    [
      ['a part of its body and closes', closing(`${OK}Content-Length: 9\r\n\r\nhalf`)],
      ['no last chunk and closes, as it had announced', closing(`${CHUNKED}4\r\nhalf\r\n`)],
      ['no last chunk and resets', resetting(`${CHUNKED}4\r\nhalf\r\n`)],
      ['until it resets', resetting(`${OK}\r\nhalf`)],
    ],
    { ok: false, kind: 'cut', status: 200, body: 'half', kept: false },
  ),
];

/** Sends as fast as the other side takes it, until the connection is closed. */
const flood =
  (first: string, part: string) =>
  ({ socket }: ReceivedRequest) => {
    socket.write(first);
    const more = (): void => {
      while (!socket.destroyed && socket.writable && socket.write(part));
    };
    socket.on('drain', more);
    more();
  };

const endless = (status: number) => `HTTP/1.1 ${status} Some\r\nTransfer-Encoding: chunked\r\n\r\n`;
const CHUNK = `4000\r\n${'x'.repeat(16 * KIB)}\r\n`;

const COSTLY: Behaviour[] = [
  ...named(
    [
      ['a thousand chunks', `${CHUNKED}${'1\r\nx\r\n'.repeat(1_000)}0\r\n\r\n`],
      ['200 KiB', `${OK}Content-Length: ${200 * KIB}\r\n\r\n${'x'.repeat(200 * KIB)}`],
    ],
    { ok: true, status: 200, kept: true },
  ),
  ...named(
    [
      ['more than 256 KiB', `${OK}Content-Length: ${300 * KIB}\r\n\r\n${'x'.repeat(300 * KIB)}`],
      ['a success without an end', flood(endless(200), CHUNK)],
      ['in chunks of one byte without an end', flood(endless(200), '1\r\nx\r\n'.repeat(1_000))],
      [
        'in a record for each byte, without an end',
        ({ socket }) => drip(socket, `${OK}Content-Length: 9999\r\n\r\n${'x'.repeat(5_000)}`),
      ],
      ['with a chunk extension without an end', flood(`${endless(200)}1;x=`, 'e'.repeat(16 * KIB))],
      ['with trailers without an end', flood(`${CHUNKED}0\r\n`, 'X: y\r\n'.repeat(1_000))],
    ],
    { ok: true, status: 200, kept: false },
  ),
  {
    what: 'a failure without an end',
    answer: flood(endless(500), CHUNK),
    judged: { ok: false, kind: 'status', status: 500, kept: false },
  },
  ...named(
    [
      ['21 informational answers', HINT.repeat(21) + OK + TWO],
      ['informational answers without an end', flood('', HINT.repeat(100))],
      ['empty lines without an end', flood('', '\n'.repeat(16 * KIB))],
    ],
    { ok: false, kind: 'protocol', kept: false },
  ),
];

export const BEHAVIOURS: readonly Behaviour[] = [
  ...REGULAR,
  ...LAST,
  ...BODILESS,
  ...STATUSES,
  ...AMBIGUOUS,
  ...NOT_HTTP,
  ...CUT,
  ...COSTLY,
];
