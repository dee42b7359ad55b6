import type { Config } from '../config/config.ts';
import type { LogFields } from '../log/logger.ts';
import type { Clusters } from './clusters.ts';

/** What a log begins with: who runs, what it runs, and where. Of the kubeconfigs it names the servers only. */
export function startFields(
  { version, identity, config }: { readonly version: string; readonly identity: string; readonly config: Config },
  { control, target }: Clusters,
  leases: readonly string[],
): LogFields {
  const { program, clusters, controllers, drivers, server } = config;
  return {
    version,
    program,
    identity,
    namespace: clusters.namespace,
    controllers: [...controllers],
    leases,
    control: control.server,
    target: target?.server,
    drivers: drivers.map(({ provider, address }) => `${provider}=${address}`),
    listen: `${server.address}:${server.port}`,
  };
}
