import { expect, test } from '@jest/globals';

import { MACHINE_LEASE, MANAGER_LEASE } from '../kube/leader/names.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE } from './ironcore/controllers/leases.ts';
import { alsoReadBy } from '../operator/caches.ts';
import { OWN_KINDS } from '../operator/cached/own.ts';
import { TARGET_KINDS } from '../operator/cached/target.ts';
import { WORLDS } from './served.ts';
import { configFrom } from '../operator/config/config.ts';
import { WORLD_FLAGS } from './index.ts';

const { volumeAttachments } = TARGET_KINDS;
const TABLES = [OWN_KINDS, ...WORLDS.map(({ kinds }) => kinds), { volumeAttachments }];

/** The names under which such a process has caches; `?` marks those that it does without while it may not read them. */
function cachedIn({
  leases = [],
  controllers = [],
  isAutoscaled = false,
  isEverywhere = false,
}: {
  readonly leases?: readonly string[];
  readonly controllers?: readonly string[];
  readonly isAutoscaled?: boolean;
  /** As far as Cluster API goes. */
  readonly isEverywhere?: boolean;
}): readonly string[] {
  const itself = {
    namespace: 'ns',
    leaseNamespace: 'ns',
    leases: new Set(leases),
    controllers: new Set(controllers),
    isAutoscaled,
    of: configFrom('machinist run', new Map([['cluster-api-all-namespaces', [String(isEverywhere)]]]), WORLD_FLAGS).of,
  };
  const process = { ...itself, alsoRead: alsoReadBy(WORLDS, itself) };
  return TABLES.flatMap((table) => Object.entries(table)).flatMap(([name, kind]) => {
    const options = kind.how(process);
    if (options === undefined) return [];
    const isHere = isEverywhere && name.startsWith('clusterAPI') && options.namespace === undefined;
    return [`${name}${options.optionalFor === undefined ? '' : '?'}${isHere ? ' *' : ''}`];
  });
}

const OWN = ['machines', 'machineSets', 'machineDeployments'];
const OF_MIRANTIS = ['clusterMachines', 'configMaps?', 'cloudClusters?', 'machinePools?'];
const OF_MACHINES = ['machines', 'machineSets?', 'machineDeployments?', 'classes', 'labelPolicies?', 'secrets'];
const OF_POOLS = ['ironCoreMachines', 'ironCorePools', 'ironCoreClasses', 'ironCoreVolumes'];

test.each([
  ['that runs nothing', {}, []],
  ['of the machine controllers', { leases: [MACHINE_LEASE] }, [...OF_MACHINES, 'volumeAttachments']],
  ['of the owners of machines', { leases: [MANAGER_LEASE] }, OWN],
  [
    'of all controllers of ours',
    { leases: [MANAGER_LEASE, MACHINE_LEASE] },
    [...OWN, 'classes', 'labelPolicies?', 'secrets', 'volumeAttachments'],
  ],
  ['that only answers the autoscaler', { leases: [MANAGER_LEASE], isAutoscaled: true }, [...OWN, 'classes?']],
  [
    'of the front end for Mirantis Container Cloud',
    { controllers: ['mirantis'] },
    ['classes', 'labelPolicies?', 'secrets?', ...OF_MIRANTIS],
  ],
  ['of Cluster API', { controllers: ['cluster-api'] }, ['clusterAPIMachines', 'clusterAPIClusters', 'definitions']],
  [
    'of Cluster API in all namespaces',
    { controllers: ['cluster-api'], isEverywhere: true },
    ['clusterAPIMachines *', 'clusterAPIClusters *', 'clusterAPISecrets *', 'definitions'],
  ],
  ["of IronCore's scheduler", { leases: [IRONCORE_SCHEDULER_LEASE] }, ['ironCoreMachines', 'ironCorePools']],
  [
    "of IronCore's pools",
    { leases: [IRONCORE_POOLS_LEASE] },
    [...OF_POOLS, 'ironCoreNetworkInterfaces', 'ironCoreNetworks', 'ironCoreSecrets?', 'ironCorePrefixes?'],
  ],
  ["of IronCore's classes and pools", { controllers: ['ironcore.lifecycle'] }, ['ironCoreClasses', 'poolLeases']],
])('a process %s caches what its controllers read, and nothing else', (_process, how, kinds) => {
  expect(cachedIn(how)).toEqual(kinds);
});
