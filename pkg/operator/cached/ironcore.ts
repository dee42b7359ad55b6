import { POOL_LEASE_NAMESPACE } from '../../apis/ironcore/machine-pool.ts';
import {
  IRONCORE_MACHINE_INDEXES,
  IRONCORE_NETWORK_INTERFACE_INDEXES,
  IRONCORE_VOLUME_INDEXES,
} from '../../indexes/machine-indexes.ts';
import {
  ironCoreMachineClasses,
  ironCoreMachinePools,
  ironCoreMachines,
  ironCoreNetworkInterfaces,
  ironCoreNetworks,
  ironCoreVolumes,
  leases as leaseResource,
} from '../../kube/resource.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE } from '../../leader/names.ts';
import { type CachingProcess, cached } from './kind.ts';

const schedules = ({ leases }: CachingProcess): boolean => leases.has(IRONCORE_SCHEDULER_LEASE);
const servesPools = ({ leases }: CachingProcess): boolean => leases.has(IRONCORE_POOLS_LEASE);
/** Pools and classes are looked after. */
const keepsPools = ({ controllers }: CachingProcess): boolean => controllers.has('ironcore.lifecycle');

/** The kinds of IronCore, of all namespaces: each has its Machines in the pools, which have none. */
export const IRONCORE_KINDS = {
  ironCoreMachines: cached(ironCoreMachines, (process) =>
    schedules(process) || servesPools(process) ? { indexes: IRONCORE_MACHINE_INDEXES } : undefined,
  ),
  ironCorePools: cached(ironCoreMachinePools, (process) =>
    schedules(process) || servesPools(process) ? {} : undefined,
  ),
  ironCoreClasses: cached(ironCoreMachineClasses, (process) =>
    keepsPools(process) || servesPools(process) ? {} : undefined,
  ),
  ironCoreVolumes: cached(ironCoreVolumes, (process) =>
    servesPools(process) ? { indexes: IRONCORE_VOLUME_INDEXES } : undefined,
  ),
  ironCoreNetworkInterfaces: cached(ironCoreNetworkInterfaces, (process) =>
    servesPools(process) ? { indexes: IRONCORE_NETWORK_INTERFACE_INDEXES } : undefined,
  ),
  ironCoreNetworks: cached(ironCoreNetworks, (process) => (servesPools(process) ? {} : undefined)),
  /** By which pools show that they are looked after. */
  poolLeases: cached(leaseResource, (process) =>
    keepsPools(process) ? { namespace: POOL_LEASE_NAMESPACE } : undefined,
  ),
};
