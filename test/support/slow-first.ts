import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The slowest files first. If one of them started last, it would run on alone. */
const SLOW = [
  '/test/pull/server/server-limits', // 15 s of Node's own time limits
  '/test/crash/',
  '/test/e2e/',
  '/test/engines/',
  '/test/operator/',
];

/** Orders the files like vitest (by size, if there is no record of earlier runs), but with the slow ones first. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const index = SLOW.findIndex((folder) => moduleId.includes(folder));
      return index === -1 ? SLOW.length : index;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
