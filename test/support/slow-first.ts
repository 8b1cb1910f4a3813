import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes longest, the slowest first: one that began last would run on alone. */
const SLOW = [
  '/test/pull/server/server-limits', // 15 s of Node's own time limits
  '/test/crash/',
  '/test/e2e/',
  '/test/engines/',
  '/test/operator/',
];

/** As vitest would order the files, which without a record of earlier runs is by size, but for the slow ones. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const index = SLOW.findIndex((folder) => moduleId.includes(folder));
      return index === -1 ? SLOW.length : index;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
