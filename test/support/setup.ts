import { afterAll } from 'vitest';
import { endFile } from './end-of-file.ts';

// Modules are loaded once for many files, and what they register by themselves would hold for the first file only.
afterAll(endFile);
