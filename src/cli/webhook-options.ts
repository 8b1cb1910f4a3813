import { openMasterKeys } from '../access/master-key.ts';
import type { WebhookOptions } from '../access/set-webhook.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import { createNameLookup } from '../delivery/name-lookup.ts';
import { resolveName } from '../delivery/resolve-name.ts';

/** What setting a webhook's URL needs, by this process's configuration. */
export function webhookOptions(config: Config, clock: Clock, url: string): WebhookOptions {
  return {
    url,
    allowPrivate: config.FUEL_WEBHOOK_ALLOW_PRIVATE,
    masterKeys: openMasterKeys(config),
    names: createNameLookup({ resolve: resolveName, clock }),
  };
}
