import { openMasterKeys } from '../../accounts/master-key.ts';
import type { WebhookOptions } from '../../accounts/set-webhook.ts';
import type { Clock } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import { createNameLookup } from '../../targets/name-lookup.ts';
import { resolveName } from '../../targets/resolve-name.ts';

/** What setting a webhook's URL needs, by this process's configuration. */
export function webhookOptions(config: Config, clock: Clock, url: string): WebhookOptions {
  return {
    url,
    allowPrivate: config.FUEL_WEBHOOK_ALLOW_PRIVATE,
    masterKeys: openMasterKeys(config),
    names: createNameLookup({ resolve: resolveName, clock }),
  };
}
