import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** The official definitions of OTLP, as far as the tests read them. */
interface OtlpRoot {
  readonly opentelemetry: {
    readonly proto: {
      readonly collector: {
        readonly trace: {
          readonly v1: { readonly ExportTraceServiceRequest: { decode(bytes: Buffer): Request } };
        };
      };
    };
  };
}

interface Attribute {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly intValue?: { toString(): string };
    readonly doubleValue?: number;
  };
}

interface WireSpan {
  readonly traceId: Uint8Array;
  readonly spanId: Uint8Array;
  readonly parentSpanId: Uint8Array;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: { toString(): string };
  readonly endTimeUnixNano: { toString(): string };
  readonly attributes: readonly Attribute[];
  readonly links: readonly { readonly traceId: Uint8Array; readonly spanId: Uint8Array }[];
  readonly status?: { readonly code?: number } | null;
}

interface Request {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

const root = createRequire(import.meta.url)('otlp-definitions/build/src/generated/root.js') as OtlpRoot;
const { ExportTraceServiceRequest } = root.opentelemetry.proto.collector.trace.v1;

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly isError: boolean;
  readonly resource: Readonly<Record<string, string | number>>;
}

/** A collector that takes OTLP over HTTP. */
export interface OtlpReceiver {
  readonly endpoint: string;
  readonly spans: ReceivedSpan[];
  /** The headers of each request. */
  readonly requests: object[];
  close(): Promise<void>;
}

/** Starts a collector that decodes what it gets with the official definitions. `port` is 0 for any. */
export async function startOtlpReceiver(port = 0, isSilent = false): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: object[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    requests.push(request.headers);
    if (isSilent) return;
    if (request.url === '/v1/traces') for (const span of decodeSpans(Buffer.concat(chunks))) spans.push(span);
    response.setHeader('content-type', 'application/x-protobuf').end();
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    if (server.listening) await once(server.close(), 'close');
  };
  onTestFinished(close);
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, requests, close };
}

export function decodeSpans(body: Buffer): ReceivedSpan[] {
  return ExportTraceServiceRequest.decode(body).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => readable(span, valuesOf(resource.attributes)))),
  );
}

function readable(span: WireSpan, resource: ReceivedSpan['resource']): ReceivedSpan {
  return {
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    parentId: hex(span.parentSpanId),
    name: span.name,
    kind: span.kind,
    resource,
    startMs: Number(span.startTimeUnixNano.toString()) / 1e6,
    endMs: Number(span.endTimeUnixNano.toString()) / 1e6,
    attributes: valuesOf(span.attributes),
    links: span.links.map((link) => ({ traceId: hex(link.traceId), spanId: hex(link.spanId) })),
    isError: span.status?.code === 2,
  };
}

function valuesOf(attributes: readonly Attribute[]): Record<string, string | number> {
  const entries = attributes.map(({ key, value }): [string, string | number] => [
    key,
    typeof value.stringValue === 'string' && value.stringValue !== ''
      ? value.stringValue
      : Number(value.intValue?.toString() || value.doubleValue),
  ]);
  return Object.fromEntries(entries);
}

function hex(bytes: Uint8Array | null): string {
  return Buffer.from(bytes ?? []).toString('hex');
}
