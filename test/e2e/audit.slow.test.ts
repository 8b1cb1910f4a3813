import { expect, it } from 'vitest';
import { startFuel } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { confirmed, importEvents, linesOf, voided } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

it('fuel audit --follow prints what is recorded until it is interrupted, and then ends with 0', async () => {
  const service = await new ServiceProcess().start();
  await importEvents(service, [confirmed(501)]);
  const args = ['audit', '--json', '--follow', '--transaction', '503'];
  const following = startFuel(args, { dataDir: service.dataDir });
  await importEvents(service, [confirmed(503), confirmed(504)]);
  await until(() => following.stdout().includes('TransactionConfirmed'));
  await service.done(['transaction', 'import', '-'], { stdin: linesOf([voided(503), voided(504)]) });
  await until(() => following.stdout().includes('TransactionVoided'));
  following.child.kill('SIGINT');
  const { code, lines } = await following.result;
  expect([code, lines.map(({ type }) => type)]).toEqual([0, ['TransactionConfirmed', 'TransactionVoided']]);
});
