process.umask(0o077); // what this program makes is for its own user, the databases and backups too
const { main } = await import('./program.ts');
await main(process.argv);
