type List<T> = readonly [T, ...T[]];

/** Names of drivers, in several scripts. */
export const PEOPLE: List<string> = [
  'Sam Field',
  "Ann-Marie O'Neill",
  'Łukasz Żak',
  'Chloé Ångström',
  'فاطمة الحربي',
  'محمد العتيبي',
  'Ольга Щербак',
  '欧阳秀英',
  'Γιώργος Παπαδόπουλος',
  'सुनीता शर्मा',
];

export const COMPANIES: List<string> = ['Northwind Freight', 'Al Noor Logistics', 'Žitná Transport'];

export const GROUPS: List<string> = ['Depots', 'Long Haul', 'City Delivery'];

export const CORPORATES: List<string> = [
  'North Depot',
  'South Depot',
  'مستودع الشرق',
  'Größe & Söhne',
  'Склад Запад',
  'Lone Yard',
  'Harbour Terminal',
  '中央车队',
];

export const DEPARTMENTS: List<{ readonly id: number; readonly name: string }> = [
  { id: 5, name: 'Logistics' },
  { id: 6, name: 'Wartung' },
  { id: 7, name: 'المبيعات' },
];

export const MODELS: List<{
  readonly brand: string;
  readonly model: string;
  /** Hundredths of a litre per 100 km. */
  readonly consumption: number;
  readonly tankLiters: number;
}> = [
  { brand: 'Toyota', model: 'Hilux', consumption: 870, tankLiters: 80 },
  { brand: 'Škoda', model: 'Octavia', consumption: 560, tankLiters: 50 },
  { brand: 'Mercedes-Benz', model: 'Actros', consumption: 2_950, tankLiters: 600 },
];

/** Prices in hundredths of the account's currency per litre. */
export const FUELS: List<{ readonly id: number; readonly name: string; readonly price: number }> = [
  { id: 2, name: 'Diesel', price: 218 },
  { id: 1, name: 'Petrol 91', price: 226 },
  { id: 3, name: 'Petrol 95', price: 241 },
];

/** The stations of the network. */
export const STATIONS: List<{
  readonly id: number;
  readonly name: string;
  readonly provider: { readonly id: number; readonly name: string };
}> = [
  { id: 80, name: 'Ring Road 12', provider: { id: 4, name: 'Petrona' } },
  { id: 81, name: 'Airport Road 19', provider: { id: 4, name: 'Petrona' } },
  { id: 82, name: 'طريق الملك 26', provider: { id: 9, name: 'نفط الخليج' } },
  { id: 83, name: 'Hlavní třída 12', provider: { id: 11, name: 'Nafta Plus' } },
];

/** Stations outside the network, as a driver would write them. */
export const EXTERNAL_STATIONS: List<string> = ['Village Fuel', 'محطة القرية', 'Farm pump "Old Mill"'];

export const WITHDRAWAL_REASONS: List<string> = ['duplicate', 'wrong vehicle', 'entered by mistake', 'تكرار'];
