/**
 * client-node's generated clients and models, which its KubeConfig imports for `makeApiClient` alone: nobody here calls that. They are left out
 * where client-node is loaded (pkg/kube/client/config.ts) and where programs are bundled (hack/image/bundle.ts).
 */
export function isGeneratedClients(specifier: string, importer: string | undefined): boolean {
  return specifier === './gen/index.js' && importer?.endsWith('/@kubernetes/client-node/dist/config.js') === true;
}

/** The module that takes their place: what the importer names, so that it can be loaded. */
export const NO_GENERATED_CLIENTS =
  'export class ServerConfiguration {}; export function createConfiguration() { throw new Error("not loaded"); }';
