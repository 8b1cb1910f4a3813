import { MemoryView, openMemoryView } from '../../../src/engines/memory/view.ts';
import { transactionsViewContract } from '../../contracts/transactions-view.contract.ts';
import { transactionsViewAtOnceContract } from '../../contracts/transactions-view-at-once.contract.ts';
import { viewBuildContract } from '../../contracts/view-build.contract.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const openTwice = async () => {
  const [view, clock] = [new MemoryView(), new FakeClock()];
  return [openMemoryView(view, clock), openMemoryView(view, clock)] as const;
};

transactionsViewContract(async () => (await openTwice())[0]);
transactionsViewAtOnceContract(openTwice);
viewBuildContract(openTwice);
