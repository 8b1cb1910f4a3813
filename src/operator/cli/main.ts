process.umask(0o077); // files that this program creates, databases and backups included, are for its own user only
const { main } = await import('./program.ts');
await main(process.argv);
