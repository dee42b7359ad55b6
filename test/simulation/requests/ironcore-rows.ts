import type { Members } from '../api-server/json.ts';
import { del, get, type Given, merge, post, type Row, rvOf } from './row.ts';

const MACHINES = 'machines.compute.ironcore.dev';
const CLASSES = 'machineclasses.compute.ironcore.dev';
const POOLS = 'machinepools.compute.ironcore.dev';
const VOLUMES = 'volumes.storage.ironcore.dev';
const NICS = 'networkinterfaces.networking.ironcore.dev';
const ROOT = { name: 'root', device: 'oda', localDisk: { image: 'image', sizeLimit: '1Gi' } };
const DATA = { name: 'data', device: 'odb', volumeRef: { name: 'data' } };
const SHOWN: NonNullable<Row['kept']> = { what: 'causes', why: 'how Go shows a value' };

function machine(name: string, spec: Members = {}, metadata: Members = {}): Members {
  return {
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'Machine',
    metadata: { name, ...metadata },
    spec: { machineClassRef: { name: 'small' }, volumes: [ROOT], ...spec },
  };
}

const machineClass =
  (name: string, capabilities: Members) =>
  ({ prefix }: Given): Members => ({
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'MachineClass',
    metadata: { name: `${prefix}${name}` },
    capabilities,
  });

/** Definitions of IronCore, whose rules say what users may change, and what its controllers write. */
export const IRONCORE_ROWS: readonly Row[] = [
  post('a class', CLASSES, machineClass('small', { cpu: '1', memory: '1Gi' })),
  post('a class whose capabilities are numbers', CLASSES, machineClass('numbers', { cpu: 1, memory: 1_073_741_824 })),
  post('a class without memory', CLASSES, machineClass('x', { cpu: '1' }), { kept: SHOWN }),
  post('a class with nothing of something', CLASSES, machineClass('x', { cpu: '0', memory: '1Gi' }), { kept: SHOWN }),
  post('a class with a quantity that is none', CLASSES, machineClass('x', { cpu: 'many', memory: '1Gi' }), {
    kept: SHOWN,
  }),
  merge('other capabilities', `${CLASSES}/small`, { capabilities: { cpu: '2', memory: '1Gi' } }, { kept: SHOWN }),
  merge('a finalizer of a class', `${CLASSES}/small`, {
    metadata: { finalizers: ['compute.ironcore.dev/machineclass'] },
  }),

  post('a pool', POOLS, ({ prefix }: Given) => ({
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'MachinePool',
    metadata: { name: `${prefix}pool` },
    spec: { providerID: 'sim://pool' },
  })),
  merge('taints of a pool', `${POOLS}/pool`, { spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } }),
  merge('no taints any more', `${POOLS}/pool`, { spec: { taints: [] } }),
  merge('a taint without an effect', `${POOLS}/pool`, { spec: { taints: [{ key: 'a' }] } }, { kept: SHOWN }),
  merge('another provider ID', `${POOLS}/pool`, { spec: { providerID: 'sim://other' } }, { kept: SHOWN }),
  merge('the status of a pool', `${POOLS}/pool/status`, {
    status: {
      state: 'Ready',
      capacity: { 'class/machine.small': '4' },
      allocatable: { 'class/machine.small': '4' },
      availableMachineClasses: [{ name: 'small' }],
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'HeartbeatReceived',
          message: 'The runtime answers',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    },
  }),
  merge('a capacity that is gone', `${POOLS}/pool/status`, { status: { capacity: { 'class/machine.small': null } } }),

  post('a Machine of IronCore', MACHINES, machine('a'), { save: 'ironcore' }),
  post(
    'one that is off, with all that it may have',
    MACHINES,
    machine('b', {
      power: 'Off',
      machinePoolSelector: { zone: 'a' },
      machinePoolRef: { name: 'pool' },
      volumes: [
        ROOT,
        DATA,
        { name: 'scratch', ephemeral: { volumeTemplate: { spec: { resources: { storage: '1Gi' } } } } },
      ],
      networkInterfaces: [
        { name: 'nic', networkInterfaceRef: { name: 'nic' } },
        { name: 'own', ephemeral: { networkInterfaceTemplate: { spec: { ips: [{ value: '10.0.0.1' }] } } } },
      ],
      ignitionRef: { name: 'ignition' },
      tolerations: [{ key: 'a', operator: 'Exists' }],
    }),
  ),
  post('a volume of two sources', MACHINES, machine('x', { volumes: [{ ...DATA, localDisk: {} }] }), { kept: SHOWN }),
  post('a volume of no source', MACHINES, machine('x', { volumes: [{ name: 'data' }] }), { kept: SHOWN }),
  post('two volumes of one name', MACHINES, machine('x', { volumes: [ROOT, { ...DATA, name: 'root' }] }), {
    kept: SHOWN,
  }),
  post('two volumes of one device', MACHINES, machine('x', { volumes: [ROOT, { ...DATA, device: 'oda' }] }), {
    kept: SHOWN,
  }),
  post('volumes without devices', MACHINES, machine('deviceless', { volumes: [{ name: 'root', localDisk: {} }] })),
  post('a toleration without a key', MACHINES, machine('x', { tolerations: [{ operator: 'Equal' }] }), { kept: SHOWN }),
  post('a power that is none', MACHINES, machine('x', { power: 'Perhaps' }), { kept: SHOWN }),
  post('a name with a dot', MACHINES, machine('a.b'), { kept: SHOWN }),
  merge('another class', `${MACHINES}/a`, { spec: { machineClassRef: { name: 'large' } } }, { kept: SHOWN }),
  merge('a pool', `${MACHINES}/a`, (given: Given) => ({
    metadata: { resourceVersion: rvOf(given, 'ironcore') },
    spec: { machinePoolRef: { name: 'pool' } },
  })),
  merge('another pool', `${MACHINES}/a`, { spec: { machinePoolRef: { name: 'other' } } }, { kept: SHOWN }),
  merge('no pool any more', `${MACHINES}/a`, { spec: { machinePoolRef: null } }, { kept: SHOWN }),
  merge(
    'another image of a disk',
    `${MACHINES}/a`,
    { spec: { volumes: [{ ...ROOT, localDisk: { image: 'other' } }] } },
    {
      kept: SHOWN,
    },
  ),
  merge('a disk with an image that goes', `${MACHINES}/a`, { spec: { volumes: [DATA] } }, { kept: SHOWN }),
  merge('another volume', `${MACHINES}/a`, { spec: { volumes: [ROOT, DATA] } }),
  merge('the status of a Machine', `${MACHINES}/a/status`, {
    status: { machineID: 'sim://1', state: 'Running', volumes: [{ name: 'data', state: 'Attached' }], unknown: 1 },
  }),
  merge('a volume that goes', `${MACHINES}/a`, { spec: { volumes: [ROOT] } }),
  merge(
    'and comes back while it is still attached',
    `${MACHINES}/a`,
    { spec: { volumes: [ROOT, DATA] } },
    { kept: SHOWN },
  ),
  merge('it is attached no longer', `${MACHINES}/a/status`, { status: { volumes: null } }),
  merge('so that it may come back', `${MACHINES}/a`, { spec: { volumes: [ROOT, DATA] } }),
  merge('power by a patch', `${MACHINES}/a`, { spec: { power: 'Off' } }),
  get('what became of it', `${MACHINES}/a`),

  post('a Volume', VOLUMES, {
    apiVersion: 'storage.ironcore.dev/v1alpha1',
    kind: 'Volume',
    metadata: { name: 'data' },
    spec: { resources: { storage: '1Gi' }, volumeClassRef: { name: 'fast' } },
  }),
  merge('a claim', `${VOLUMES}/data`, { spec: { claimRef: { name: 'a', uid: 'u' } } }),
  merge('a claim without a UID', `${VOLUMES}/data`, { spec: { claimRef: { name: 'a', uid: null } } }, { kept: SHOWN }),
  merge('the status of a Volume', `${VOLUMES}/data/status`, {
    status: { state: 'Available', access: { driver: 'd', handle: 'h' }, more: { kept: true } },
  }),
  merge('a claim that is taken off', `${VOLUMES}/data`, { spec: { claimRef: null } }),
  post('a NetworkInterface', NICS, {
    apiVersion: 'networking.ironcore.dev/v1alpha1',
    kind: 'NetworkInterface',
    metadata: { name: 'nic' },
    spec: { networkRef: { name: 'network' }, ips: [{ value: '10.0.0.2' }] },
  }),
  merge('one that is claimed, and has a handle', `${NICS}/nic`, {
    spec: { machineRef: { name: 'a', uid: 'u' }, providerID: 'sim://1/nic' },
  }),
  merge('and is free again', `${NICS}/nic`, { spec: { machineRef: null, providerID: null } }),
  del('a Machine that goes', `${MACHINES}/b`),
];
