import { POOL_LEASE_NAMESPACE } from '../api/machine-pool.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { IRONCORE_MACHINE_INDEXES, IRONCORE_NETWORK_INTERFACE_INDEXES, IRONCORE_VOLUME_INDEXES } from './indexes.ts';
import { leases as leaseResource, secrets } from '../../../kube/client/resource.ts';
import {
  ironCoreMachineClasses,
  ironCoreMachinePools,
  ironCoreMachines,
  ironCoreNetworkInterfaces,
  ironCoreNetworks,
  ironCorePrefixes,
  ironCoreVolumes,
} from '../api/resources.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE } from './leases.ts';
import { type CachingProcess, cached } from '../../../operator/cached/kind.ts';

const schedules = ({ leases }: CachingProcess): boolean => leases.has(IRONCORE_SCHEDULER_LEASE);
const servesPools = ({ leases }: CachingProcess): boolean => leases.has(IRONCORE_POOLS_LEASE);
const keepsPools = ({ controllers }: CachingProcess): boolean => controllers.has('ironcore.lifecycle');

/** What is lost where roles of earlier releases do not cover them, or where IronCore's IPAM is not installed. */
const SECRETS = 'Secrets of Machines of IronCore: those that come late are seen up to a minute later';
const PREFIXES =
  'Prefixes of NetworkInterfaces of IronCore: those that are allocated late are seen up to a minute later';

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
  /** Metadata only: what comes wakes whoever waits for it. */
  ironCoreSecrets: cached<KubeObject>(secrets, (process) =>
    servesPools(process) ? { metadataOnly: true, optionalFor: SECRETS } : undefined,
  ),
  ironCorePrefixes: cached<KubeObject>(ironCorePrefixes, (process) =>
    servesPools(process) ? { metadataOnly: true, optionalFor: PREFIXES } : undefined,
  ),
  poolLeases: cached(leaseResource, (process) =>
    keepsPools(process) ? { namespace: POOL_LEASE_NAMESPACE } : undefined,
  ),
};
