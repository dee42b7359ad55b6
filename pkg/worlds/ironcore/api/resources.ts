import { COMPUTE_GROUP, IPAM_GROUP, IRONCORE_VERSION, NETWORKING_GROUP, STORAGE_GROUP } from './group.ts';
import type { IronCoreMachine } from './machine.ts';
import type { IronCoreMachineClass } from './machine-class.ts';
import type { IronCoreMachinePool } from './machine-pool.ts';
import type { IronCoreNetwork, IronCoreNetworkInterface, IronCorePrefix } from './network-interface.ts';
import type { IronCoreVolume } from './volume.ts';
import { defineResource, type ShippedFiles } from '../../../apis/resource.ts';

const COMPUTE: ShippedFiles = { definitions: 'crds/ironcore', roles: 'deploy/rbac/ironcore-*.yaml' };
const OTHERS: ShippedFiles = { definitions: 'crds/ironcore' };

export const ironCoreMachines = defineResource<IronCoreMachine>(
  COMPUTE_GROUP,
  IRONCORE_VERSION,
  'machines',
  'Machine',
  true,
  COMPUTE,
);
export const ironCoreMachinePools = defineResource<IronCoreMachinePool>(
  COMPUTE_GROUP,
  IRONCORE_VERSION,
  'machinepools',
  'MachinePool',
  false,
  COMPUTE,
);
export const ironCoreMachineClasses = defineResource<IronCoreMachineClass>(
  COMPUTE_GROUP,
  IRONCORE_VERSION,
  'machineclasses',
  'MachineClass',
  false,
  COMPUTE,
);
export const ironCoreVolumes = defineResource<IronCoreVolume>(
  STORAGE_GROUP,
  IRONCORE_VERSION,
  'volumes',
  'Volume',
  true,
  OTHERS,
);
export const ironCoreNetworkInterfaces = defineResource<IronCoreNetworkInterface>(
  NETWORKING_GROUP,
  IRONCORE_VERSION,
  'networkinterfaces',
  'NetworkInterface',
  true,
  OTHERS,
);
export const ironCoreNetworks = defineResource<IronCoreNetwork>(
  NETWORKING_GROUP,
  IRONCORE_VERSION,
  'networks',
  'Network',
);
export const ironCorePrefixes = defineResource<IronCorePrefix>(IPAM_GROUP, IRONCORE_VERSION, 'prefixes', 'Prefix');
