type List<T> = readonly [T, ...T[]];

/** Given and family names of drivers, one entry a script or language. */
export const PEOPLE: List<{ readonly given: List<string>; readonly family: List<string> }> = [
  {
    given: ['Sam', 'Lee', 'Grace', 'Tom', 'Ann-Marie'],
    family: ['Field', 'Moss', "O'Neill", 'Baker', 'Hill'],
  },
  {
    given: ['José', 'Zoë', 'Łukasz', 'Søren', 'Chloé'],
    family: ['Núñez', 'Müller', 'Żak', 'Ångström', 'Lefèvre'],
  },
  {
    given: ['محمد', 'فاطمة', 'خالد', 'نورة', 'يوسف'],
    family: ['العتيبي', 'الحربي', 'حسن', 'الزهراني', 'منصور'],
  },
  {
    given: ['Иван', 'Ольга', 'Дмитрий', 'Наталья', 'Юрий'],
    family: ['Петров', 'Щербак', 'Соколов', 'Ильич', 'Громов'],
  },
  { given: ['伟', '芳', '秀英', '敏', '强'], family: ['王', '李', '张', '刘', '欧阳'] },
  {
    given: ['Γιώργος', 'Ελένη', 'Νίκος', 'Μαρία', 'Άννα'],
    family: ['Παπαδόπουλος', 'Νικολάου', 'Δήμου', 'Λάμπρου', 'Ρήγας'],
  },
  { given: ['राजेश', 'सुनीता', 'अमित', 'प्रिया', 'विजय'], family: ['शर्मा', 'सिंह', 'पटेल', 'गुप्ता', 'यादव'] },
];

export const COMPANIES: List<string> = [
  'Northwind Freight',
  'Al Noor Logistics',
  'Žitná Transport',
  'Delta Cold Chain',
  'Harbour & Sons',
  'Πειραιάς Cargo',
];

export const GROUPS: List<string> = ['Depots', 'Long Haul', 'City Delivery', 'Field Service'];

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
  { id: 8, name: 'Security' },
];

export const MODELS: List<{
  readonly brand: string;
  readonly model: string;
  /** Hundredths of a litre per 100 km. */
  readonly consumption: readonly [number, number];
  readonly tankLiters: number;
}> = [
  { brand: 'Isuzu', model: 'D-Max', consumption: [780, 960], tankLiters: 76 },
  { brand: 'Toyota', model: 'Hilux', consumption: [760, 980], tankLiters: 80 },
  { brand: 'Ford', model: 'Transit', consumption: [820, 1_080], tankLiters: 80 },
  { brand: 'Škoda', model: 'Octavia', consumption: [480, 640], tankLiters: 50 },
  { brand: 'Mercedes-Benz', model: 'Actros', consumption: [2_600, 3_300], tankLiters: 600 },
  { brand: 'Volvo', model: 'FH', consumption: [2_500, 3_200], tankLiters: 500 },
];

/** Prices in hundredths of the account's currency per litre. */
export const FUELS: List<{ readonly id: number; readonly name: string; readonly price: number }> = [
  { id: 2, name: 'Diesel', price: 218 },
  { id: 1, name: 'Petrol 91', price: 226 },
  { id: 3, name: 'Petrol 95', price: 241 },
];

const PROVIDERS: List<{ readonly id: number; readonly name: string }> = [
  { id: 4, name: 'Petrona' },
  { id: 9, name: 'نفط الخليج' },
  { id: 11, name: 'Nafta Plus' },
];

const ROADS: List<string> = [
  'Ring Road',
  'Airport Road',
  'Harbour Street',
  'Hlavní třída',
  'طريق الملك',
  'Autobahn A7',
];

/** The stations of the network. */
export const STATIONS = listStations();

/** Stations outside the network, as a driver would write them. */
export const EXTERNAL_STATIONS: List<string> = [
  'Village Fuel',
  'محطة القرية',
  'Čerpací stanice Zlín',
  'Farm pump "Old Mill"',
  '高速加油站',
];

export const WITHDRAWAL_REASONS: List<string> = ['duplicate', 'wrong vehicle', 'entered by mistake', 'تكرار'];

interface SampleStation {
  readonly id: number;
  readonly name: string;
  readonly provider: { readonly id: number; readonly name: string };
}

function listStations(): List<SampleStation> {
  const stations = ROADS.flatMap((road, r) =>
    PROVIDERS.map((provider, p) => ({
      id: 80 + r * PROVIDERS.length + p,
      name: `${road} ${12 + 7 * p}`,
      provider,
    })),
  );
  return stations as unknown as List<SampleStation>;
}
