import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { isMap, isScalar, parseDocument, visit } from 'yaml';
import { type RefusalCode, refusalAnswer, refusals } from '../../src/pull/answers.ts';
import { signature, webhookRequest } from '../../src/push/message/envelope.ts';
import { ROOT, readDocument } from '../support/documents.ts';
import { openApi, operation, schemaAt, webhookOperations } from '../support/openapi/document.ts';

const refusalCodes = Object.keys(refusals) as RefusalCode[];

const TEXT = readDocument('docs/openapi.yaml');

describe('docs/openapi.yaml', () => {
  it('passes the linter', async () => {
    const settings = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
    const linted = promisify(execFile)('redocly', ['lint', 'docs/openapi.yaml', '--format=stylish'], {
      cwd: ROOT,
      env: { ...process.env, ...settings, PATH: `${ROOT}/node_modules/.bin:${process.env.PATH}` },
    });
    await expect(linted).resolves.toMatchObject({ stderr: expect.stringContaining('is valid') });
  });

  it('lists each code that a client can get under its status, and no other', () => {
    const documented = Object.entries(operation.responses).flatMap(([status, response]) =>
      codesOf(response).map((code) => `${status} ${code}`),
    );
    const real = refusalCodes.map((code) => `${refusalAnswer({ code }, 'x').status} ${code}`);
    expect(documented.toSorted()).toEqual(real.toSorted());
    expect((schemaAt('ErrorCode').enum as string[]).toSorted()).toEqual(refusalCodes.toSorted());
  });

  it('shows messages in its examples as they are sent', () => {
    const messages = refusalCodes.map((code) => /"message":"([^"]*)"/.exec(sent(code))?.[1]);
    const shown = [...TEXT.matchAll(/^ +message: (?!.*true)(\S.*)$/gm)].map(([, message]) => message);
    expect(shown.length).toBeGreaterThan(3);
    expect(shown.filter((message) => !messages.includes(message))).toEqual([]);
  });

  it('has the vector of the signature right', () => {
    const { description } = openApi.components.parameters.ServiceSignature ?? { description: '' };
    const [secret = '', t = '', body = '', v1] = [...description.matchAll(/`([^`]+)`/g)]
      .map(([, code = '']) => code)
      .slice(-4);
    const atMs = Number(t.replace('t=', '')) * 1000;
    expect(signature({ secret, body, atMs })).toBe(`${t},v1=${v1}`);
  });

  it('has the headers of a webhook, no more and no fewer', () => {
    const { headers } = webhookRequest({
      url: 'https://erp.example.com/',
      secret: 'x',
      atMs: 0,
      envelope: { id: 'x', type: 'webhook.test', createdAtMs: 0, recordText: null },
    });
    const sentNames = Object.keys(headers).filter((name) => name !== 'Content-Type'); // the body's media type says it
    for (const { parameters } of Object.values(webhookOperations)) {
      expect(parameters.map(({ name }) => name).toSorted()).toEqual(sentNames.toSorted());
    }
  });

  it('writes the amounts of its examples with their decimals', () => {
    const decimals = new Map<string, number>();
    const wrong: string[] = [];
    const document = parseDocument(TEXT);
    visit(document, {
      Pair(_, { key, value }) {
        const places = isMap(value) ? value.get('x-decimals') : undefined;
        if (isScalar(key) && typeof places === 'number') decimals.set(String(key.value), places);
      },
    });
    expect([...decimals.keys()]).toContain('total_amount');
    visit(document, {
      Pair(_, { key, value }) {
        const places = isScalar(key) ? decimals.get(String(key.value)) : undefined;
        if (places === undefined || !isScalar(value) || typeof value.value !== 'number') return;
        const fraction = /\.(\d+)$/.exec(String(value.source))?.[1] ?? '';
        if (fraction.length !== places) wrong.push(`${key}: ${value.source}`);
      },
    });
    expect(wrong).toEqual([]);
  });
});

function codesOf(response: object): string[] {
  return [...JSON.stringify(response).matchAll(/"code":\{"enum":(\[[^\]]*\])/g)].flatMap(([, codes = '[]']) =>
    JSON.parse(codes),
  );
}

function sent(code: RefusalCode): string {
  return String(refusalAnswer({ code }, 'x').body);
}
