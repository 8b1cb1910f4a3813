import { type Finding, right, wrong } from './check.ts';

/** Whether the mail server takes a connection, with the credentials that it was given. */
export async function checkMail(
  url: string | undefined,
  verify: (url: string) => Promise<void>,
): Promise<Finding> {
  if (url === undefined)
    return right('FUEL_SMTP_URL is not set: nobody is mailed, the log names each notice');
  const { host } = new URL(url);
  try {
    await verify(url);
    return right(`${host} takes mails`);
  } catch (error) {
    return wrong(`${host}: ${(error as Error).message}`, 'start the mail server, or correct FUEL_SMTP_URL');
  }
}
