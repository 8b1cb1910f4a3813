import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventTypes } from '../../src/domain/events.ts';
import { eventSchemaText, exampleFaults, exampleFile, schemaFile } from './event-docs.ts';

// Writes the schemas to docs/events, and reports each example that is missing or does not fit its schema.

const folder = join(import.meta.dirname, '../../docs/events');
mkdirSync(folder, { recursive: true });
for (const type of eventTypes) {
  writeFileSync(join(folder, schemaFile(type)), eventSchemaText(type));
  const path = join(folder, exampleFile(type));
  const faults = existsSync(path) ? exampleFaults(type, readFileSync(path, 'utf8')) : ['it is missing'];
  for (const fault of faults) {
    process.stderr.write(`${exampleFile(type)}: ${fault}\n`);
    process.exitCode = 1;
  }
}
