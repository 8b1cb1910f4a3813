import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { enums, nullable, number } from 'superstruct';
import { describe, expect, it } from 'vitest';
import { eventTypes } from '../../src/domain/events.ts';
import {
  eventDocFiles,
  eventSchemaText,
  exampleFaults,
  exampleFile,
  schemaFile,
} from '../../tools/event-docs/event-docs.ts';
import { jsonSchemaOf } from '../../tools/event-docs/json-schema.ts';
import { pathsOf, withValue } from '../support/transactions/mutations.ts';

/** A format is a remark: what the service accepts is in the patterns. */
const ajv = new Ajv2020({ validateFormats: false, strictTypes: false });
const folder = join(import.meta.dirname, '../../docs/events');
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');

describe('the published events', () => {
  it('are a schema and an example for each type, a README, and nothing else', () => {
    expect(readdirSync(folder).sort()).toEqual(eventDocFiles());
  });

  it('are each one row of the table in the README', () => {
    const rows = read('README.md').matchAll(
      /^\| `(\w+)` \| `(?:transaction-<id>|account-<id>|notices-<id>|imports-<month>|import-<import id>|operations|seals)` \|/gm,
    );
    expect([...rows].map((row) => row[1])).toEqual(eventTypes);
  });

  it('say in the README how to find the rules for a field of the metadata', () => {
    for (const member of ['schema_version', 'at', 'actor', 'command', 'correlation_id', 'causation_id']) {
      expect(read('README.md')).toContain(`| \`${member}\` |`);
    }
  });
});

describe.each(eventTypes)('%s', (type) => {
  const schema = JSON.parse(read(schemaFile(type)));
  const example = JSON.parse(read(exampleFile(type)));
  const fits = ajv.compile(schema);

  it('has the schema that the code makes today (npm run docs:events)', () => {
    expect(read(schemaFile(type))).toBe(eventSchemaText(type));
  });

  it('has an example that the service accepts', () => {
    expect(exampleFaults(type, read(exampleFile(type)))).toEqual([]);
  });

  it('has an example that fits its JSON Schema', () => {
    expect(fits(example)).toBe(true);
  });

  it('is refused by its JSON Schema whenever the service refuses it', () => {
    const strange = [undefined, null, true, 'text', '1.2345678', -1, 2 ** 53, 1.5, [], {}, ['text']];
    for (const path of pathsOf(example.data)) {
      for (const value of strange) {
        const changed = withValue(example, ['data', ...path], value);
        const accepted = exampleFaults(type, JSON.stringify(changed)).length === 0;
        expect(fits(changed), `${path.join('.')} = ${JSON.stringify(value)}`).toBe(accepted);
      }
    }
  });
});

describe('the check of an example', () => {
  it('names what is not JSON, another type, and each faulty member', () => {
    expect(exampleFaults('KeySwitchedOff', '{')).toEqual([expect.stringMatching(/^not JSON: /)]);
    expect(exampleFaults('KeySwitchedOff', '{"type":"KeySwitchedOn"}')).toEqual([
      'type: must be "KeySwitchedOff"',
    ]);
    expect(exampleFaults('KeySwitchedOff', '{"type":"KeySwitchedOff","data":{"account_id":"7"}}')).toEqual([
      expect.stringMatching(/^account_id: /),
      expect.stringMatching(/^prefix: /),
    ]);
  });
});

describe('the JSON Schema of a struct', () => {
  it('lists null among the values of a nullable choice', () => {
    expect(jsonSchemaOf(nullable(enums(['a', 'b'])) as never)).toEqual({
      type: ['string', 'null'],
      enum: ['a', 'b', null],
    });
  });

  it('is refused for a kind of struct that it does not know', () => {
    expect(() => jsonSchemaOf(number() as never)).toThrow(RangeError);
  });
});
