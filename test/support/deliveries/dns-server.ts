import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { onTestFinished } from 'vitest';

/** Addresses (an absent family has none), a server failure (`fails`), no answer at all (`silent`), or no such name. */
export type DnsAnswer = readonly string[] | 'fails' | 'silent' | 'no such name';
export type DnsFamily = 'A' | 'AAAA';

const HEADER_BYTES = 12;
const TYPE = { A: 1, AAAA: 28 } as const;
const RCODE = { fails: 2, 'no such name': 3 } as const;

/** Starts a DNS server on 127.0.0.1 with these answers. Returns its address in the form that a resolver takes. */
export async function dnsServer(answer: (name: string, family: DnsFamily) => DnsAnswer): Promise<string> {
  const socket = createSocket('udp4');
  socket.on('message', (query, peer) => {
    const { name, family, end } = readQuestion(query);
    const given = answer(name, family);
    if (given !== 'silent') socket.send(response(query.subarray(0, end), family, given), peer.port);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

function readQuestion(query: Buffer): { name: string; family: DnsFamily; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const family = query.readUInt16BE(at + 1) === TYPE.AAAA ? 'AAAA' : 'A';
  return { name: labels.join('.').toLowerCase(), family, end: at + 5 };
}

function response(question: Buffer, family: DnsFamily, answer: Exclude<DnsAnswer, 'silent'>): Buffer {
  const version = family === 'A' ? 4 : 6;
  const addresses = typeof answer === 'string' ? [] : answer.filter((text) => isIP(text) === version);
  const head = Buffer.from(question);
  head.writeUInt16BE(0x8180 | (typeof answer === 'string' ? RCODE[answer] : 0), 2);
  head.writeUInt16BE(addresses.length, 6);
  head.fill(0, 8, HEADER_BYTES);
  const records = addresses.map((text) => {
    const bytes = ipaddr.parse(text).toByteArray();
    // The name from the question, its type, class IN, a TTL of one minute, and the address.
    return Buffer.from([0xc0, 0x0c, 0, TYPE[family], 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]);
  });
  return Buffer.concat([head, ...records]);
}
