import type { ClusterMachine } from '../pkg/worlds/mirantis/api/machine.ts';
import type { CloudCluster } from '../pkg/worlds/mirantis/api/cluster.ts';
import type { MachinePool } from '../pkg/worlds/mirantis/api/pool.ts';
import type { ConfigMap } from '../pkg/apis/wire.ts';

/** A Machine of Mirantis Container Cloud that asks for nothing special, with changes of `spec.providerSpec.value`. */
export function clusterMachine(value: object = {}, metadata: object = {}): ClusterMachine {
  return {
    metadata: {
      name: 'm-1',
      namespace: 'default',
      uid: 'uid-of-front',
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { 'kaas.mirantis.com/provider': 'openstack', 'cluster.sigs.k8s.io/cluster-name': 'cluster-1' },
      ...metadata,
    },
    spec: {
      providerSpec: {
        value: {
          apiVersion: 'openstackproviderconfig.k8s.io/v1alpha1',
          kind: 'OpenstackMachineProviderSpec',
          availabilityZone: 'nova',
          flavor: 'kaas.small',
          image: 'bionic',
          securityGroups: ['ctrl', 'glob'],
          ...value,
        },
      },
    },
  };
}

/** The ConfigMap of its Cluster, with changes; a key that is undefined is not there. */
export function clusterSettings(change: Readonly<Record<string, string | undefined>> = {}): ConfigMap {
  const all = { region: 'eu', keyName: 'key', networkID: 'n-1', podNetworkCIDRs: '10.96.0.0/12', ...change };
  const data = Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const metadata = {
    name: 'cluster-1',
    namespace: 'default',
    uid: 'uid-of-settings',
    resourceVersion: '1',
    creationTimestamp: '',
  };
  return { metadata, data };
}

/** A MachinePool of two such Machines, with changes of the value of each. */
export function machinePool(value: object = {}, spec: object = {}, metadata: object = {}): MachinePool {
  const machine = clusterMachine(value);
  return {
    metadata: { ...machine.metadata, name: 'pool-1', uid: 'uid-of-pool', generation: 1, ...metadata },
    spec: { replicas: 2, machineSpec: machine.spec ?? {}, ...spec },
  };
}

/** The Cluster of such Machines, with changes of its value and of its status. */
export function cloudCluster(value: object = {}, providerStatus: object = {}): CloudCluster {
  const { namespace = '', labels = {} } = clusterMachine().metadata;
  return {
    metadata: {
      name: 'cluster-1',
      namespace,
      uid: 'uid-of-cluster',
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels,
    },
    spec: { providerSpec: { value: { ...value } } },
    status: { providerStatus },
  };
}
