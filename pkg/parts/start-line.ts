import type { LogFields } from '../log/logger.ts';
import type { Base } from './base.ts';

/** What a log begins with: who runs, what it runs, and where. Of the kubeconfigs it names the servers only. */
export function startFields(base: Base, leases: readonly string[]): LogFields {
  const { version, identity, config, control, target } = base;
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
