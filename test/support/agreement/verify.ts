import { type ReadLogOptions, readLog } from '../../../src/operator/verify/read-log.ts';
import {
  type DeliveryAgreement,
  type DeliverySideOptions,
  deliveryJudge,
} from '../../../src/operator/verify/verify-deliveries.ts';
import {
  type ViewAgreement,
  type ViewSideOptions,
  viewJudge,
} from '../../../src/operator/verify/verify-view.ts';

export type VerifyDeliveriesOptions = DeliverySideOptions & ReadLogOptions;
export type VerifyViewOptions = ViewSideOptions & ReadLogOptions;

/** Compares the delivery log with what the events call for. Changes nothing. */
export async function verifyDeliveries(options: VerifyDeliveriesOptions): Promise<DeliveryAgreement> {
  const judge = deliveryJudge(options);
  await readLog([judge], options);
  return judge.finish();
}

/** Compares the view with what the events render to. */
export async function verifyView(options: VerifyViewOptions): Promise<ViewAgreement> {
  const judge = viewJudge(options);
  await readLog([judge], options);
  return judge.finish();
}
