import { describe, expect, test } from '@jest/globals';

import type { IronCoreMachine } from '../../api/machine.ts';
import { NO_DOWNWARD_API } from '../../api/downward-api.ts';
import { type DesiredMachine, desiredRuntimeMachine, type Surroundings } from './desired-machine.ts';
import type { Holder } from './kept-uses.ts';

const meta = (name: string) => ({
  name,
  namespace: 'ns',
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
});

/** That of the document, with devices. */
function documentMachine(spec: Partial<IronCoreMachine['spec']> = {}): IronCoreMachine {
  return {
    metadata: meta('machine-sample'),
    spec: {
      machineClassRef: { name: 'machineclass-sample' },
      image: 'my-image',
      volumes: [{ name: 'rootdisk', device: 'oda', volumeRef: { name: 'my-volume' } }],
      networkInterfaces: [{ name: 'primary', networkInterfaceRef: { name: 'networkinterface-sample' } }],
      ignitionRef: { name: 'my-ignition-secret' },
      ...spec,
    },
  };
}

const OURS = { name: 'machine-sample', uid: 'uid-machine-sample' };
const SECRETS: Readonly<Record<string, Record<string, Buffer>>> = {
  'my-ignition-secret': { 'ignition.yaml': Buffer.from('systemd: {}') },
  access: { userID: Buffer.from('admin') },
  key: { passphrase: Buffer.from('p') },
};
const VOLUME = {
  metadata: meta('my-volume'),
  spec: { claimRef: OURS, encryption: { secretRef: { name: 'key' } }, resources: { storage: '10Gi' } },
  status: {
    state: 'Available',
    access: { driver: 'ceph', handle: 'h', volumeAttributes: { monitors: 'm' }, secretRef: { name: 'access' } },
  },
};
const NIC = {
  metadata: meta('networkinterface-sample'),
  spec: { machineRef: OURS, networkRef: { name: 'network' }, ips: [{ value: '10.0.0.1' }], attributes: { a: 'b' } },
};

const AROUND: Surroundings = {
  machineClass: { metadata: meta('machineclass-sample'), capabilities: { cpu: 4 } },
  runtimeClasses: [{ name: 'machineclass-sample', resources: { cpu: 4n }, quantity: 1 }],
  secret: (name) => SECRETS[name],
  volume: (name) => (name === 'my-volume' ? VOLUME : undefined),
  networkInterface: (name) => (name === 'networkinterface-sample' ? NIC : undefined),
  network: (name) => (name === 'network' ? { metadata: meta('network'), spec: { providerID: 'net-1' } } : undefined),
  prefixAddress: () => undefined,
  keeperOf: () => undefined,
  downwardAPI: NO_DOWNWARD_API,
};

test.each([
  { what: 'there is no image', spec: { image: '' }, image: undefined, ignored: /^$/ },
  { what: 'there is no disk', spec: { volumes: [] }, image: undefined, ignored: /^$/ },
  {
    what: 'the first is a local one',
    spec: { volumes: [{ name: 'root', device: 'oda', localDisk: {} }] },
    image: undefined,
    ignored: /^$/,
  },
  { what: 'the first is a Volume of it', spec: {}, image: 'my-image', ignored: /^$/ },
  {
    what: 'the first is a Volume of another',
    spec: {},
    image: 'x',
    ignored: /first disk, rootdisk, is Volume my-volume, whose image is the one of its spec\.dataSource\.osImage \(x\)/,
  },
  { what: 'the first is a Volume of none', spec: {}, image: undefined, ignored: /\(none\)/ },
])('where $what, the image of the spec is told to have no effect only if it has none', ({ spec, image, ignored }) => {
  const source = image === undefined ? {} : { dataSource: { osImage: { image } } };
  const around = { ...AROUND, volume: () => ({ ...VOLUME, spec: { ...VOLUME.spec, ...source } }) };

  const told = desiredRuntimeMachine(documentMachine(spec), around).ignored;

  expect(told ?? '').toMatch(ignored);
});

describe('what a Machine should be at its runtime', () => {
  test('is what its document says', () => {
    const wanted = desiredRuntimeMachine(documentMachine({ guestConfig: { hostname: 'web' } }), AROUND);

    expect(wanted).toEqual({
      runtimeClass: { ready: 'machineclass-sample' },
      ignition: { ready: Buffer.from('systemd: {}') },
      hostname: 'web',
      ignored: expect.stringContaining('spec.image my-image is not used'),
      volumes: new Map([
        [
          'rootdisk',
          {
            ready: {
              name: 'rootdisk',
              device: 'oda',
              localDisk: undefined,
              connection: {
                driver: 'ceph',
                handle: 'h',
                attributes: {
                  monitors: 'm',
                  rawVolumeLabels:
                    '{"machinepoollet.ironcore.dev/volume-name":"my-volume","machinepoollet.ironcore.dev/volume-namespace":"ns","machinepoollet.ironcore.dev/volume-uid":"uid-my-volume"}',
                },
                secretData: { userID: Buffer.from('admin') },
                encryptionData: { passphrase: Buffer.from('p') },
                effectiveStorageBytes: 10_737_418_240n,
              },
            },
          },
        ],
      ]),
      networkInterfaces: new Map([
        [
          'primary',
          {
            ready: {
              name: 'primary',
              networkId: 'net-1',
              ips: ['10.0.0.1'],
              attributes: {
                a: 'b',
                rawNICLabels:
                  '{"machinepoollet.ironcore.dev/nic-name":"networkinterface-sample","machinepoollet.ironcore.dev/nic-namespace":"ns","machinepoollet.ironcore.dev/nic-uid":"uid-networkinterface-sample"}',
                rawNetworkLabels:
                  '{"machinepoollet.ironcore.dev/network-name":"network","machinepoollet.ironcore.dev/network-namespace":"ns","machinepoollet.ironcore.dev/network-uid":"uid-network"}',
              },
            },
          },
        ],
      ]),
    });
  });

  test.each([
    { what: 'of its own image', entry: { localDisk: { image: 'own', sizeLimit: '1Ki' } }, size: 1024n, image: 'own' },
    { what: 'of the image of the spec', entry: { localDisk: {} }, size: 0n, image: 'my-image' },
    { what: 'that was empty', entry: { emptyDisk: { sizeLimit: 5 } }, size: 5n, image: 'my-image' },
  ])('has a disk of the pool $what', ({ entry, size, image }) => {
    const volumes = [{ name: 'rootdisk', device: 'oda', ...entry }];

    const { volumes: wanted } = desiredRuntimeMachine(documentMachine({ volumes }), AROUND);

    const localDisk = { sizeBytes: size, image: { image } };
    expect(wanted.get('rootdisk')).toEqual({
      ready: { name: 'rootdisk', device: 'oda', localDisk, connection: undefined },
    });
  });

  test('has the image of the spec on the first disk only, and the others an empty one', () => {
    const volumes = ['oda', 'odb'].map((device) => ({ name: device, device, localDisk: {} }));

    const wanted = [...desiredRuntimeMachine(documentMachine({ volumes }), AROUND).volumes.values()];

    expect(wanted).toMatchObject([
      { ready: { localDisk: { image: { image: 'my-image' } } } },
      { ready: { localDisk: { image: { image: '' } } } },
    ]);
  });

  test('has the size that a Volume really has', () => {
    const grown = { ...VOLUME, status: { ...VOLUME.status, resources: { storage: '20' } } };
    const { volumes } = desiredRuntimeMachine(documentMachine(), { ...AROUND, volume: () => grown });
    expect(volumes.get('rootdisk')).toMatchObject({ ready: { connection: { effectiveStorageBytes: 20n } } });
  });

  test('has the address of a prefix, and the names of what was made for it', () => {
    const ips = [{ value: '10.0.0.1' }, { ephemeral: {} }];
    const machine = documentMachine({
      volumes: [{ name: 'tmp', device: 'oda', ephemeral: { volumeTemplate: {} } }],
      networkInterfaces: [{ name: 'eth', ephemeral: { networkInterfaceTemplate: {} } }],
    });
    const asked = new Set<string>();
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Machine', ...OURS, controller: true }];
    const { networkInterfaces } = desiredRuntimeMachine(machine, {
      ...AROUND,
      volume: (name) => void asked.add(name),
      networkInterface: (name) => {
        asked.add(name);
        return { metadata: { ...NIC.metadata, ownerReferences }, spec: { ...NIC.spec, ips } };
      },
      prefixAddress: (name) => (name === 'machine-sample-eth-1' ? '10.0.0.9' : undefined),
    });

    expect([...asked]).toEqual(['machine-sample-tmp', 'machine-sample-eth']);
    expect(networkInterfaces.get('eth')).toMatchObject({ ready: { ips: ['10.0.0.1', '10.0.0.9'] } });
  });
});

describe('what a Machine waits for', () => {
  const volumeWith = (part: object): Partial<Surroundings> => ({ volume: () => ({ ...VOLUME, ...part }) });
  const nicWith = (part: object): Partial<Surroundings> => ({
    networkInterface: () => ({ ...NIC, spec: { ...NIC.spec, ...part } }),
  });
  const rows: readonly {
    readonly around: Partial<Surroundings>;
    readonly machine?: IronCoreMachine;
    readonly why: string;
  }[] = [
    { around: { machineClass: undefined }, why: 'MachineClass machineclass-sample does not exist: create it' },
    {
      around: { runtimeClasses: [{ name: 'big', resources: { cpu: 8n }, quantity: 1 }] },
      why: 'the runtime has no class with the capabilities of MachineClass machineclass-sample, or several; it has: big',
    },
    {
      around: { runtimeClasses: [] },
      why: 'the runtime has no class with the capabilities of MachineClass machineclass-sample, or several; it has: none',
    },
    {
      around: { secret: (name) => (name === 'my-ignition-secret' ? undefined : SECRETS[name]) },
      why: 'Secret my-ignition-secret does not exist: create it',
    },
    {
      around: {},
      machine: documentMachine({ ignitionRef: { name: 'my-ignition-secret', key: 'other' } }),
      why: 'Secret my-ignition-secret has no key other: add it, or name another one in spec.ignitionRef.key',
    },
    { around: { volume: () => undefined }, why: 'Volume my-volume does not exist' },
    { around: volumeWith({ spec: {} }), why: 'Volume my-volume is not claimed yet' },
    {
      around: volumeWith({ spec: { claimRef: { name: 'other', uid: 'u' } } }),
      why: 'Volume my-volume is in use by Machine other',
    },
    { around: volumeWith({ status: {} }), why: 'Volume my-volume is not available: its state is not known' },
    {
      around: volumeWith({ status: { ...VOLUME.status, state: 'Pending' } }),
      why: 'Volume my-volume is not available: its state is Pending',
    },
    { around: volumeWith({ status: { state: 'Available' } }), why: 'Volume my-volume has no status.access' },
    {
      around: { keeperOf: (handle) => (handle === 'volume ceph h' ? { id: 'x', pool: 'q' } : undefined) },
      why: 'Volume my-volume is in use by machine x at the runtime of MachinePool q, which has no Machine: see condition MachinesKept there, or delete it at the runtime',
    },
    {
      around: {
        keeperOf: (handle) => (handle === 'volume ceph h' ? { id: 'x', pool: 'q', machine: 'ns/other' } : undefined),
      },
      why: 'Volume my-volume is in use by machine x of Machine ns/other at the runtime of MachinePool q: wait until that machine no longer has it, or remove it from one of the two Machines',
    },
    {
      around: { keeperOf: (handle) => (handle === 'address net-1 10.0.0.1' ? { id: 'x', pool: 'q' } : undefined) },
      why: 'NetworkInterface networkinterface-sample: 10.0.0.1 is in use by machine x at the runtime of MachinePool q, which has no Machine: see condition MachinesKept there, or delete it at the runtime',
    },
    {
      around: { secret: (name) => (name === 'access' ? undefined : SECRETS[name]) },
      why: 'Volume my-volume: access Secret access does not exist',
    },
    {
      around: { secret: (name) => (name === 'key' ? undefined : SECRETS[name]) },
      why: 'Volume my-volume: encryption Secret key does not exist',
    },
    { around: { networkInterface: () => undefined }, why: 'NetworkInterface networkinterface-sample does not exist' },
    { around: nicWith({ machineRef: undefined }), why: 'NetworkInterface networkinterface-sample is not claimed yet' },
    {
      around: nicWith({ machineRef: { name: 'other', uid: 'u' } }),
      why: 'NetworkInterface networkinterface-sample is in use by Machine other',
    },
    {
      around: { network: () => undefined },
      why: 'NetworkInterface networkinterface-sample: Network network does not exist',
    },
    {
      around: nicWith({ ips: [] }),
      why: 'NetworkInterface networkinterface-sample has no IP address: add one to spec.ips',
    },
    {
      around: nicWith({ ips: [{ ephemeral: {} }] }),
      why: 'NetworkInterface networkinterface-sample: Prefix networkinterface-sample-0 is not allocated yet',
    },
    {
      around: { volume: () => VOLUME },
      machine: documentMachine({ volumes: [{ name: 'tmp', device: 'oda', ephemeral: { volumeTemplate: {} } }] }),
      why: 'Volume my-volume already exists and does not belong to this Machine: delete it, or rename the entry',
    },
    {
      around: { networkInterface: () => NIC },
      machine: documentMachine({ networkInterfaces: [{ name: 'e', ephemeral: { networkInterfaceTemplate: {} } }] }),
      why: 'NetworkInterface networkinterface-sample already exists and does not belong to this Machine: delete it, or rename the entry',
    },
    {
      around: {},
      machine: documentMachine({ volumes: [{ name: 'v', localDisk: {} }] }),
      why: 'no device name is left for it',
    },
  ];
  test.each(rows)('$why', ({ around, machine = documentMachine(), why }) => {
    const { runtimeClass, ignition, volumes, networkInterfaces } = desiredRuntimeMachine(machine, {
      ...AROUND,
      ...around,
    });

    const needed = [runtimeClass, ignition, ...volumes.values(), ...networkInterfaces.values()];
    expect(needed.flatMap((one) => ('why' in one ? [one.why] : []))).toEqual([why]);
  });
});

test.each([
  { what: 'and is known where its machine has it', machine: 'ns/other', held: ['10.0.0.1'] },
  { what: 'and is not what the machine of a third one has', machine: 'ns/third', held: undefined },
])('a NetworkInterface that another Machine has claimed is waited for, $what', ({ machine, held }) => {
  const { networkInterfaces } = desiredRuntimeMachine(documentMachine({}), {
    ...AROUND,
    networkInterface: () => ({ ...NIC, spec: { ...NIC.spec, machineRef: { name: 'other', uid: 'u' } } }),
    keeperOf: (handle) => (handle === 'address net-1 10.0.0.1' ? { id: 'x', pool: 'q', machine } : undefined),
  });

  const [nic] = networkInterfaces.values();
  expect(nic).toMatchObject({ why: 'NetworkInterface networkinterface-sample is in use by Machine other' });
  expect(nic && 'held' in nic ? nic.held?.ips : undefined).toEqual(held);
});

test('fields that flags name are labels of volumes and network interfaces, too, in the order in which Go writes them', () => {
  const fields = new Map([
    ['zone', { field: 'labels', key: 'z' }],
    ['kind', { field: 'namespace', key: '' }],
  ] as const);
  const downwardAPI = {
    ...NO_DOWNWARD_API,
    volumeLabels: fields,
    networkInterfaceLabels: fields,
    networkLabels: fields,
  };
  const volume = () => ({ ...VOLUME, metadata: { ...VOLUME.metadata, labels: { z: 'one' } } });

  const { volumes, networkInterfaces } = desiredRuntimeMachine(documentMachine({}), { ...AROUND, downwardAPI, volume });

  const [disk] = [...volumes.values()].flatMap((one) => ('ready' in one ? [one.ready] : []));
  const [nic] = [...networkInterfaces.values()].flatMap((one) => ('ready' in one ? [one.ready] : []));
  const prefix = 'downward-api.machinepoollet.ironcore.dev';
  expect(disk?.connection?.attributes['rawVolumeLabels']).toMatch(
    new RegExp(`^{"${prefix}/kind":"ns","${prefix}/zone":"one","machinepoollet`),
  );
  const ofNic = new RegExp(`^{"${prefix}/kind":"ns","${prefix}/zone":"","machinepoollet`);
  expect(nic?.attributes).toMatchObject({
    rawNICLabels: expect.stringMatching(ofNic),
    rawNetworkLabels: expect.stringMatching(ofNic),
  });
});

test('a Volume that another Machine has claimed, and its machine uses, is known without its keys', () => {
  const dataOf = (user: string) => {
    const keeperOf = (): Holder => ({ id: 'x', pool: 'q', machine: user });
    const claimRef = { name: 'other', uid: 'u' };
    const [volume] = desiredRuntimeMachine(documentMachine(), {
      ...AROUND,
      volume: () => ({ ...VOLUME, spec: { claimRef } }),
      keeperOf,
    }).volumes.values();
    return volume;
  };

  expect(dataOf('ns/other')).toMatchObject({
    why: 'Volume my-volume is in use by Machine other',
    held: { connection: { driver: 'ceph', handle: 'h', secretData: {}, encryptionData: {} } },
  });
  expect(dataOf('ns/third')).toEqual({ why: 'Volume my-volume is in use by Machine other' });
});

test('what the machine of another Machine uses is known all the same, and what one without a Machine uses is not looked at', () => {
  const free = desiredRuntimeMachine(documentMachine(), AROUND);
  const heldBy = (keeper: Holder) => desiredRuntimeMachine(documentMachine(), { ...AROUND, keeperOf: () => keeper });
  const heldIn = ({ volumes, networkInterfaces }: DesiredMachine): readonly unknown[] =>
    [...volumes.values(), ...networkInterfaces.values()].map((one) => ('ready' in one ? one.ready : one.held));

  expect(heldIn(heldBy({ id: 'x', pool: 'q', machine: 'ns/other' }))).toEqual(heldIn(free));
  expect(heldIn(heldBy({ id: 'x', pool: 'q' }))).toEqual([undefined, undefined]);
});
