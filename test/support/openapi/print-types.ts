import { registerHooks } from 'node:module';

/**
 * Prints the types that openapi-typescript makes of docs/openapi.yaml. It builds them with the API of TypeScript 5, so it
 * gets a compiler that has one.
 */
registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier !== 'typescript') return nextResolve(specifier, context);
    return nextResolve(new URL('typescript-api.ts', import.meta.url).href, context);
  },
});
const { astToString, default: openapiTS } = await import('openapi-typescript');
const document = new URL('../../../docs/openapi.yaml', import.meta.url);
process.stdout.write(astToString(await openapiTS(document)));
