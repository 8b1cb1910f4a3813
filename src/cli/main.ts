import { enableCompileCache } from 'node:module';

process.umask(0o077); // what this program makes is for its own user, the databases and backups too
enableCompileCache(); // most of a short command's time would go into reading its sources
const { main } = await import('./program.ts');
await main(process.argv);
