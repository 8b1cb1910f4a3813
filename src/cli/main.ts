import { setFlagsFromString } from 'node:v8';

process.umask(0o077); // files that this program creates, databases and backups included, are for its own user only
// bin/fuel keeps the main thread's young generation small; left set, the flag would override what other threads ask for.
setFlagsFromString('--max-semi-space-size=0');
const { main } = await import('./program.ts');
await main(process.argv);
