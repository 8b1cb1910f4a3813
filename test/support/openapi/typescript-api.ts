import common from '@ts-morph/common';

/** The compiler's API in JavaScript, which TypeScript 7 has no more. */
export default common.ts;
