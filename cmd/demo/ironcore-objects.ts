import {
  COMPUTE_GROUP,
  IRONCORE_VERSION,
  NETWORKING_GROUP,
  STORAGE_GROUP,
} from '../../pkg/worlds/ironcore/api/group.ts';

/** The MachinePool of the demo, and the class that its runtime has. */
export const DEMO_POOL = 'demo';
export const SMALL = 'small';
/** A Volume that no Machine has yet. */
export const SPARE = 'spare';

/** Names of the demo's Machines; each has a Volume and a NetworkInterface of the same name. */
export function machineNames(machines: number): readonly string[] {
  return Array.from({ length: machines }, (_, index) => `worker-${index + 1}`);
}

/** Machines of IronCore, and all that they name. */
export function ironCoreObjects(namespace: string, machines: number): readonly object[] {
  const compute = `${COMPUTE_GROUP}/${IRONCORE_VERSION}`;
  const storage = `${STORAGE_GROUP}/${IRONCORE_VERSION}`;
  const networking = `${NETWORKING_GROUP}/${IRONCORE_VERSION}`;
  const volume = (name: string): object => ({
    apiVersion: storage,
    kind: 'Volume',
    metadata: { name, namespace },
    spec: { resources: { storage: '10Gi' } },
  });
  return [
    {
      apiVersion: compute,
      kind: 'MachineClass',
      metadata: { name: SMALL },
      capabilities: { cpu: '1', memory: '4Gi' },
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'ignition', namespace },
      stringData: { 'ignition.yaml': 'systemd: {}\n' },
    },
    {
      apiVersion: networking,
      kind: 'Network',
      metadata: { name: 'network', namespace },
      spec: { providerID: 'demo://network' },
    },
    volume(SPARE),
    ...machineNames(machines).flatMap((name, index) => [
      volume(name),
      {
        apiVersion: networking,
        kind: 'NetworkInterface',
        metadata: { name, namespace },
        spec: { networkRef: { name: 'network' }, ips: [{ value: `10.0.${index >> 8}.${index & 255}` }] },
      },
      {
        apiVersion: compute,
        kind: 'Machine',
        metadata: { name, namespace },
        spec: {
          machineClassRef: { name: SMALL },
          volumes: [
            { name: 'root', localDisk: { image: 'demo-os' } },
            { name: 'data', volumeRef: { name } },
          ],
          networkInterfaces: [{ name: 'primary', networkInterfaceRef: { name } }],
          ignitionRef: { name: 'ignition' },
        },
      },
    ]),
  ];
}
