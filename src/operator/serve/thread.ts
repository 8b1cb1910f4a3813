import { openEngines } from '../../engines/engines.ts';
import { runJob } from '../../service/threads/job.ts';
import { JOBS } from './jobs.ts';

// Every thread of a process begins here.
await runJob(JOBS, openEngines);
