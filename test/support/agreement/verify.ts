import { type ReadLogOptions, readLog } from '../../../src/operator/verify/read-log.ts';
import {
  type DeliveryAgreement,
  DeliveryJudge,
  type DeliveryJudgeOptions,
} from '../../../src/operator/verify/verify-deliveries.ts';
import {
  type ViewAgreement,
  ViewJudge,
  type ViewJudgeOptions,
} from '../../../src/operator/verify/verify-view.ts';

export type VerifyDeliveriesOptions = DeliveryJudgeOptions & ReadLogOptions;
export type VerifyViewOptions = ViewJudgeOptions & ReadLogOptions;

/** Compares the delivery log with what the events call for. Changes nothing. */
export async function verifyDeliveries(options: VerifyDeliveriesOptions): Promise<DeliveryAgreement> {
  const judge = new DeliveryJudge(options);
  await readLog([judge], options);
  return judge.finish();
}

/** Compares the view with what the events render to. */
export async function verifyView(options: VerifyViewOptions): Promise<ViewAgreement> {
  const judge = new ViewJudge(options);
  await readLog([judge], options);
  return judge.finish();
}
