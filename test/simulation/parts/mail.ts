import type { Mail } from '../../../src/push/notices/mailer.ts';
import type { Simulation } from '../simulation.ts';
import { NO_FAULTS } from '../stores/gate.ts';

/** A mail server that is sometimes busy in a storm. The witness sees every mail that it takes. */
export function mailServer(simulation: Simulation) {
  const chance = simulation.chance.fork('mail');
  const sendMail = async ({ to, subject, text }: Mail): Promise<{ rejected: [] }> => {
    await simulation.timeline.pause(chance.between(5, 200));
    if (simulation.rates !== NO_FAULTS && chance.is(0.2)) throw new Error('the mail server is busy');
    simulation.witness.sawMail({ to, subject, text });
    return { rejected: [] };
  };
  return { createTransport: () => ({ sendMail, close: () => undefined }) };
}
