process.umask(0o077); // only its own user can read the files that this program creates, including databases and backups
const { main } = await import('./program.ts');
await main(process.argv);
