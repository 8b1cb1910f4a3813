import { systemClock } from '../../../src/base/clock.ts';
import { openSqliteDeliveryQueue } from '../../../src/engines/sqlite/queue/queue.ts';
import { claimOptions } from './deliveries.ts';

// A separate process: claims everything due in FILE and is killed before it can report.
const [path, leaseMs] = process.argv.slice(2);
if (path === undefined) throw new Error('usage: claim-delivery-and-die.ts FILE LEASE_MS');
const queue = openSqliteDeliveryQueue({ path, clock: systemClock });
const claimed = await queue.claim(claimOptions(Date.now(), { holder: 'killed', leaseMs: Number(leaseMs) }));
if (claimed.length > 0) process.kill(process.pid, 'SIGKILL');
