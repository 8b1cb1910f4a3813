import { afterAll } from 'vitest';
import { endFile } from './end-of-file.ts';

// Modules are loaded once for many files, so hooks that they register themselves would run for the first file only.
afterAll(endFile);
