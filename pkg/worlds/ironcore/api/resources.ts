import { COMPUTE_GROUP, IPAM_GROUP, IRONCORE_VERSION, NETWORKING_GROUP, STORAGE_GROUP } from './group.ts';
import type { IronCoreMachine } from './machine.ts';
import type { IronCoreMachineClass } from './machine-class.ts';
import type { IronCoreMachinePool } from './machine-pool.ts';
import type { IronCoreNetwork, IronCoreNetworkInterface, IronCorePrefix } from './network-interface.ts';
import type { IronCoreVolume } from './volume.ts';
import { resourcesOf } from '../../../apis/resource.ts';

const DEFINITIONS = 'crds/ironcore';
const compute = resourcesOf(COMPUTE_GROUP, IRONCORE_VERSION, {
  definitions: DEFINITIONS,
  roles: 'deploy/rbac/ironcore-*.yaml',
});
const storage = resourcesOf(STORAGE_GROUP, IRONCORE_VERSION, { definitions: DEFINITIONS });
const ofInterfaces = resourcesOf(NETWORKING_GROUP, IRONCORE_VERSION, { definitions: DEFINITIONS });
const networking = resourcesOf(NETWORKING_GROUP, IRONCORE_VERSION);
const ipam = resourcesOf(IPAM_GROUP, IRONCORE_VERSION);

export const ironCoreMachines = compute<IronCoreMachine>('machines', 'Machine');
export const ironCoreMachinePools = compute<IronCoreMachinePool>('machinepools', 'MachinePool', { namespaced: false });
export const ironCoreMachineClasses = compute<IronCoreMachineClass>('machineclasses', 'MachineClass', {
  namespaced: false,
});
export const ironCoreVolumes = storage<IronCoreVolume>('volumes', 'Volume');
export const ironCoreNetworkInterfaces = ofInterfaces<IronCoreNetworkInterface>(
  'networkinterfaces',
  'NetworkInterface',
);
export const ironCoreNetworks = networking<IronCoreNetwork>('networks', 'Network');
export const ironCorePrefixes = ipam<IronCorePrefix>('prefixes', 'Prefix');
