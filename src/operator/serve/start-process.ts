import { openEngines } from '../../engines/engines.ts';
import { type Service, type ServiceOptions, startService } from '../../service/service.ts';
import { THREAD_ENTRY } from './jobs.ts';
import { operatorSide } from './operator-side.ts';

/** Starts a process of the service with the engines that its configuration selects and the operator's parts. */
export function startProcess(
  options: Omit<ServiceOptions, 'openEngines' | 'entry' | 'operator'>,
): Promise<Service> {
  const operator = operatorSide(options.config, options.clock);
  return startService({ ...options, openEngines, entry: THREAD_ENTRY, operator });
}
