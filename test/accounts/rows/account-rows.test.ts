import { accountRowsContract } from '../../contracts/account-rows.contract.ts';
import { onEachTables } from '../../support/engines/each-tables.ts';

onEachTables(accountRowsContract);
