import { spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Ledger } from '../../examples/ledger/ledger.ts';
import { parseExactly, type Transaction } from '../../examples/ledger/transaction.ts';
import { standardSecret } from '../../src/accounts/key-text.ts';
import { readDocument, sectionOf } from '../support/documents.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { printedRecord } from '../support/transactions/printed-record.ts';
import { installed } from '../support/verifiers.ts';

const RECORD = '{"liters":45.20,"note":"say \\"1.50\\", 2.5","parts":[-100.270000,7,null,1.5e-7,2E3]}';
const EXACT = { liters: '45.20', note: 'say "1.50", 2.5', parts: ['-100.270000', 7, null, '1.5e-7', '2E3'] };
const DECIMALS = readDocument('docs/guide/decimals.md');

/** Returns the first block of code in this language. */
function blockOf(text: string, language: string): string {
  const block = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(text)?.[1];
  if (block === undefined) throw new Error(`there is no ${language} block`);
  return block;
}

function run(program: string, args: readonly string[], input: string, cwd = temporaryFolder()): string {
  const { error, stderr, stdout } = spawnSync(program, args, { cwd, input, encoding: 'utf8' });
  if (error !== undefined || stderr !== '') throw new Error(`${program}: ${error?.message ?? stderr}`);
  return stdout;
}

describe('decimals.md', () => {
  test('has JavaScript that keeps decimals as text, and nothing else', () => {
    const program = `${blockOf(DECIMALS, 'js')} console.log(JSON.stringify(parseExactly(${JSON.stringify(RECORD)})))`;
    expect(JSON.parse(run(process.execPath, ['-'], program))).toEqual(EXACT);
  });

  test('has a pattern for PHP that quotes decimals, and leaves strings alone', () => {
    const [, written = ''] = /'\/(.*)\/',/.exec(blockOf(DECIMALS, 'php')) ?? [];
    const pattern = written.replaceAll('\\\\', '\\').replaceAll(/([+*])\+/g, '$1'); // JavaScript has no possessive ones
    const quoted = RECORD.replaceAll(new RegExp(pattern, 'g'), (found) =>
      found.startsWith('"') ? found : `"${found}"`,
    );
    expect(JSON.parse(quoted)).toEqual(EXACT);
  });
});

describe.each(installed(['verify.php']))('PHP as in %s', () => {
  const parsed = (text: string): string => {
    const print = `try { echo json_encode(parseExactly(${JSON.stringify(text).replaceAll('$', '\\$')})); }`;
    return run(
      'php',
      [],
      `<?php ${blockOf(DECIMALS, 'php')} ${print} catch (JsonException $e) { echo 'refused'; }`,
    );
  };

  test('decimals.md keeps decimals as text, and refuses a page that was cut', () => {
    expect(JSON.parse(parsed(RECORD))).toEqual(EXACT);
    expect([parsed('null'), parsed(RECORD.slice(0, -1)), parsed('"1.50')]).toEqual([
      'null',
      'refused',
      'refused',
    ]);
  });

  /** A library that, like the published one, verifies with an empty key, and fails without a comma in the header. */
  const library = `
    namespace StandardWebhooks {
      class Webhook {
        function __construct(private string $secret) {}
        function verify(string $body, array $headers) {
          $key = base64_decode(substr($this->secret, 6));
          $given = explode(',', $headers['webhook-signature'])[1] ?? null;
          if (!hash_equals(base64_encode(hash_hmac('sha256', $body, $key, true)), $given)) throw new \\Exception();
        }
      }
    }`;
  const status = (secret: string, signature: string): string => {
    const read = "$rawBody = file_get_contents('php://input');";
    const block = blockOf(readDocument('docs/guide/verify/README.md'), 'php');
    expect(block).toContain(read);
    const program = `<?php ${library} namespace {
      ini_set('error_log', '/dev/null');
      register_shutdown_function(fn () => print(http_response_code() ?: 'accepted'));
      function getallheaders() { return ['Webhook-Signature' => '${signature}']; }
      putenv('WEBHOOK_SECRET_STANDARD=${secret}');
      ${block.replace(read, "$rawBody = '{}';")} }`;
    return run('php', [], program);
  };
  const signed = (key: string) => `v1,${createHmac('sha256', key).update('{}').digest('base64')}`;

  test('verify/README.md accepts what is genuine, and nothing with a secret that is empty or of the other form', () => {
    const secret = 's'.repeat(43);
    expect(status(standardSecret(secret), signed(secret))).toBe('accepted');
    for (const wrong of ['', 'whsec_', ' ', secret]) expect(status(wrong, signed(''))).toBe('503');
    for (const forged of [signed(''), 'v1', '']) expect(status(standardSecret(secret), forged)).toBe('401');
  });
});

describe('reconciling.md', () => {
  test('sums a local month of the ledger exactly, by either time', () => {
    const cwd = temporaryFolder();
    const ledger = new Ledger(join(cwd, 'fuel.db'));
    const store = (id: number, created_at: string, confirmed_at: string | null): void => {
      const record = printedRecord(id, { created_at, confirmed_at });
      ledger.receive(`d${id}`, parseExactly(record) as Transaction);
    };
    store(1, '2026-08-31T21:59:59.999Z', '2026-08-31T22:00:00.000Z');
    store(2, '2026-09-30T21:59:59.999Z', null);
    store(3, '2026-08-31T22:00:00.000Z', '2026-09-01T00:00:00.000Z');
    store(4, '2026-09-30T22:00:00.000Z', '2026-09-30T22:00:01.000Z');
    ledger.close();
    const text = sectionOf(readDocument('docs/guide/reconciling.md'), '## At the end of a month');
    const [, program = ''] = /<<'END'\n([\s\S]*)END\n/.exec(blockOf(text, 'sh')) ?? [];
    const printed = run(process.execPath, ['-'], program, cwd);
    expect(printed).toContain(
      'created_at [Object: null prototype] { transactions: 2, millionths: 200540000 }',
    );
    expect(printed).toContain(
      'coalesce(confirmed_at, created_at) [Object: null prototype] { transactions: 3, millionths: 300810000 }',
    );
  });
});
