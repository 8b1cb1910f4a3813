import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folder } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  cancelled,
  confirmed,
  external,
  linesOf,
  openAccount,
  SEPTEMBER,
  voided,
} from '../support/transactions/e2e-samples.ts';

const DESIGN_CONFIRMED =
  '{"id":501,"status":"CONFIRMED","created_at":"2026-09-03T08:15:30.123Z","confirmed_at":"2026-09-03T08:16:02.000Z",' +
  '"correction_reference_id":null,"corporate":{"id":31,"name":"North Depot"},"corporate_group":{"id":3,"name":"Depots"},' +
  '"fuel":{"type":{"id":2,"name":"Diesel"},"liters":45.20,"price_per_liter":2.18,"amount":98.54},' +
  '"odometer_reading":120345,"distance_traveled":512,"fuel_consumption":8.83,' +
  '"station":{"id":88,"name":"Ring Road 12","provider":{"id":4,"name":"Petrona"},"is_external":false},' +
  '"vehicle":{"id":900,"code":"V-17","number_plate":"ABC 123","chassis_number":null,"brand":"Isuzu","model":"D-Max",' +
  '"year":2022,"department":{"id":5,"name":"Logistics"}},"driver":{"id":77,"name":"Sam Field"},' +
  '"fees":{"total_fees":1.50,"total_vat":0.23,"total_amount":100.270000},"images":{"pump":"<pump>","odometer":null,' +
  '"expires_at":"<expires>"}}';
const DESIGN_EXTERNAL =
  '{"id":502,"status":"EXTERNAL","created_at":"2026-09-03T09:00:00.000Z","confirmed_at":null,' +
  '"correction_reference_id":null,"corporate":{"id":51,"name":"Lone Yard"},"corporate_group":null,' +
  '"fuel":{"type":{"id":2,"name":"Diesel"},"liters":30.00,"price_per_liter":2.10,"amount":63.00},' +
  '"odometer_reading":null,"distance_traveled":null,"fuel_consumption":null,' +
  '"station":{"id":null,"name":"Village Fuel","provider":null,"is_external":true},' +
  '"vehicle":{"id":901,"code":null,"number_plate":"XYZ 9","chassis_number":null,"brand":null,"model":null,' +
  '"year":null,"department":null},"driver":{"id":78,"name":"Lee Moss"},' +
  '"fees":{"total_fees":0.00,"total_vat":0.00,"total_amount":63.000000},"images":{"pump":null,"odometer":null,' +
  '"expires_at":"<expires>"}}';

const designExternal = external(502, {
  created_at: '2026-09-03T09:00:00.000Z',
  corporate: { id: 51, name: 'Lone Yard' },
  corporate_group: null,
  fuel: { type: { id: 2, name: 'Diesel' }, liters: '30.00', price_per_liter: '2.10', amount: '63.00' },
  odometer_reading: null,
  distance_traveled: null,
  fuel_consumption: null,
  vehicle: {
    id: 901,
    code: null,
    number_plate: 'XYZ 9',
    chassis_number: null,
    brand: null,
    model: null,
    year: null,
    department: null,
  },
  driver: { id: 78, name: 'Lee Moss', mobile_number: null },
  fees: { total_fees: '0.00', total_vat: '0.00', total_amount: '63.000000' },
  images: { pump: null, odometer: null },
});

it('a file is recorded once, however often it is imported, and served in the text of the specification', async () => {
  const service = await new ServiceProcess().start();
  const { key } = await openAccount(service);
  const file = join(folder(), 'september.jsonl');
  const hidden = [external(102), confirmed(103), voided(103), cancelled(102)];
  writeFileSync(file, linesOf([confirmed(501), designExternal, ...hidden]));
  const imported = async () =>
    (await service.done(['transaction', 'import', file, '--json', '--wait'])).stdout;
  expect(await imported()).toBe('{"recorded":6,"unchanged":0,"refused":0}\n');
  expect(await imported()).toBe('{"recorded":0,"unchanged":6,"refused":0}\n');
  const { text, body } = await service.get(`/transactions?${SEPTEMBER}`, { key });
  const { pump, expires_at: expires } = body.data[1].images;
  const records = `${DESIGN_EXTERNAL},${DESIGN_CONFIRMED}`
    .replaceAll('<expires>', expires)
    .replace('<pump>', pump);
  expect(text).toBe(`{"data":[${records}],"pagination":{"limit":50,"has_more":false,"next_cursor":null}}`);
});
