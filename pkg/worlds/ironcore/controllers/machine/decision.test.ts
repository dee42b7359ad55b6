import { isDeepStrictEqual } from 'node:util';

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { remoteVolume, runtimeMachine } from '../../../../../test/fakes/runtime-machine.ts';
import { wireMessage } from '../../../../../test/fakes/wire-message.ts';
import { MachineStore } from '../../../../../packages/providers/iri/store.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import { Power, Volume, type NetworkInterface } from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeChange, RuntimeMachine } from '../../runtime/runtime.ts';
import { decideMachine, type Situation } from './decision.ts';
import type { Needed, DesiredMachine } from './desired-machine.ts';
import type { Exchange } from './kept-uses.ts';

const IGNITION = Buffer.from('{}');
const LABELS = {
  'machinepoollet.ironcore.dev/machine-uid': 'uid-m',
  'machinepoollet.ironcore.dev/machine-namespace': 'ns',
  'machinepoollet.ironcore.dev/machine-name': 'm',
  'downward-api.machinepoollet.ironcore.dev/machinepool-uid': 'pool-uid',
};
const ANNOTATIONS = {
  'machinepoollet.ironcore.dev/machine-generation': '1',
  'machinepoollet.ironcore.dev/irimachine-generation': '0',
  'machinepoollet.ironcore.dev/networkinterfacemapping': '{"eth":{"name":"nic","uid":"uid-nic"}}',
};

function machineOf(spec: Partial<IronCoreMachine['spec']> = {}, metadata: object = {}): IronCoreMachine {
  const eth = { name: 'eth', networkInterfaceRef: { name: 'nic' } };
  return {
    metadata: {
      name: 'm',
      namespace: 'ns',
      uid: 'uid-m',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...metadata,
    },
    spec: { machineClassRef: { name: 'small' }, networkInterfaces: [eth], ...spec },
  };
}

function disk(name: string, device: string, image = 'x', sizeBytes = 0n): Volume {
  return wireMessage(Volume, { name, device, localDisk: { image: { image }, sizeBytes } });
}

function remote(name: string, device: string, handle: string, size = 1n, more: object = {}): Volume {
  return remoteVolume(name, { driver: 'ceph', handle, effectiveStorageBytes: size, ...more }, device);
}

function nic(name: string, ip = '10.0.0.1'): NetworkInterface {
  return { name, networkId: 'net', ips: [ip], attributes: {} };
}

function ready<T extends { name: string }>(...all: readonly T[]): Map<string, Needed<T>> {
  return new Map(all.map((one) => [one.name, { ready: one }]));
}

/** Attributes of an object with its labels, as a machinepoollet sends them. */
const LABELS_OF = { volume: 'rawVolumeLabels', nic: 'rawNICLabels', network: 'rawNetworkLabels' } as const;

function labelsOf(
  kind: keyof typeof LABELS_OF,
  { name = 'v', uid = '1', ...more }: Readonly<Record<string, string>> = {},
) {
  const own = { name, namespace: 'ns', uid };
  const named = Object.entries(own).map(([key, value]) => [`machinepoollet.ironcore.dev/${kind}-${key}`, value]);
  return { [LABELS_OF[kind]]: JSON.stringify({ ...more, ...Object.fromEntries(named) }) };
}

const FLAGGED = 'downward-api.machinepoollet.ironcore.dev/x';

const WANTED: DesiredMachine = {
  runtimeClass: { ready: 'small' },
  ignition: { ready: IGNITION },
  volumes: ready(disk('root', 'oda'), remote('data', 'odb', 'h')),
  networkInterfaces: ready(nic('eth')),
  hostname: undefined,
  ignored: undefined,
};

function situationOf(part: Partial<Situation> = {}): Situation {
  return {
    machine: machineOf(),
    poolUID: 'pool-uid',
    downward: { labels: {}, annotations: {} },
    claim: { process: 'me', renewals: 2 },
    desired: WANTED,
    networkInterfaceUIDs: new Map([['nic', 'uid-nic']]),
    existing: [],
    uncertainMs: 0,
    isExchange: () => false,
    unseen: undefined,
    ...part,
  };
}

/** A machine at a runtime as it was wanted. */
function existing(id: string, { spec = {}, metadata = {}, status = {} } = {}): RuntimeMachine {
  const volumes = [disk('root', 'oda'), remote('data', 'odb', 'h')];
  return runtimeMachine(
    { id, labels: LABELS, annotations: ANNOTATIONS, createdAt: 5n, generation: 1n, ...metadata },
    { class: 'small', ignitionData: IGNITION, volumes, networkInterfaces: [nic('eth')], ...spec },
    status,
  );
}

describe('without a machine at the runtime', () => {
  test('one is created, with the labels by which it is found, powered on', () => {
    expect(decideMachine(situationOf({ desired: { ...WANTED, hostname: 'web' } }))).toEqual({
      kind: 'create',
      machine: {
        metadata: { labels: LABELS, annotations: { ...ANNOTATIONS, 'machine.sapcloud.io/claim': 'me:2' } },
        spec: {
          power: Power.POWER_ON,
          class: 'small',
          ignitionData: IGNITION,
          volumes: [disk('root', 'oda'), remote('data', 'odb', 'h')],
          networkInterfaces: [nic('eth')],
          guestConfig: { hostname: 'web' },
        },
      },
    });
  });

  test.each([
    { reason: 'MachineClassNotReady', wanted: { runtimeClass: { why: 'no' } } },
    { reason: 'IgnitionNotReady', wanted: { ignition: { why: 'no' } } },
    { reason: 'VolumeNotReady', wanted: { volumes: new Map([['root', { why: 'no' }]]) } },
    { reason: 'NetworkInterfaceNotReady', wanted: { networkInterfaces: new Map([['eth', { why: 'no' }]]) } },
  ])('$reason is waited for', ({ reason, wanted }) => {
    expect(decideMachine(situationOf({ desired: { ...WANTED, ...wanted } }))).toEqual({
      kind: 'wait',
      waits: [{ reason, message: 'no' }],
    });
  });

  test('all that is missing is told, the class first', () => {
    const why = { why: 'no' };
    const desired = { ...WANTED, runtimeClass: why, volumes: new Map([['root', why]]), ignition: why };

    const decision = decideMachine(situationOf({ desired }));

    expect(decision).toMatchObject({
      waits: [{ reason: 'MachineClassNotReady' }, { reason: 'IgnitionNotReady' }, { reason: 'VolumeNotReady' }],
    });
  });

  test('none is created while one may be on its way', () => {
    expect(decideMachine(situationOf({ uncertainMs: 90_000 }))).toMatchObject({ kind: 'look', afterMs: 90_000 });
  });
});

describe('with a machine at the runtime', () => {
  /** What others who serve the pool have sent, or was sent of an object that is gone. */
  const labelled: readonly {
    readonly of: string;
    readonly shown: (kind: keyof typeof LABELS_OF) => Record<string, string>;
    readonly isSame: boolean;
  }[] = [
    { of: 'not at all', shown: () => ({}), isSame: true },
    { of: 'and more of them', shown: (kind) => labelsOf(kind, { more: 'x', [FLAGGED]: '2' }), isSame: true },
    {
      of: 'with another value of a label that a flag hands on',
      shown: (kind) => labelsOf(kind, { [FLAGGED]: '1' }),
      isSame: true,
    },
    { of: 'as no JSON', shown: (kind) => ({ [LABELS_OF[kind]]: 'x' }), isSame: true },
    { of: 'as null', shown: (kind) => ({ [LABELS_OF[kind]]: 'null' }), isSame: true },
    {
      of: 'of one of the same name that was lost and created anew',
      shown: (kind) => labelsOf(kind, { uid: '2', [FLAGGED]: '2' }),
      isSame: true,
    },
    {
      of: 'of an object of another name',
      shown: (kind) => labelsOf(kind, { name: 'w', [FLAGGED]: '2' }),
      isSame: false,
    },
  ];
  const rows: readonly {
    readonly what: string;
    readonly has?: Parameters<typeof existing>[1];
    readonly wanted?: Partial<DesiredMachine>;
    readonly machine?: IronCoreMachine;
    readonly changes: readonly Partial<RuntimeChange>[];
    readonly waits?: readonly unknown[];
    /** What other Machines give something for. */
    readonly exchanged?: Exchange;
  }[] = [
    { what: 'nothing is done that is as it should be', changes: [] },
    {
      what: 'a new volume is attached',
      wanted: { volumes: ready(disk('root', 'oda'), remote('data', 'odb', 'h'), remote('more', 'odc', 'i')) },
      changes: [{ kind: 'attachVolume', volume: remote('more', 'odc', 'i') }],
    },
    {
      what: 'a volume that is not wanted is detached',
      wanted: { volumes: ready(disk('root', 'oda')) },
      changes: [{ kind: 'detachVolume', name: 'data' }],
    },
    {
      what: 'a volume of another size is updated where it is',
      wanted: { volumes: ready(disk('root', 'oda'), remote('data', 'odb', 'h', 2n)) },
      changes: [{ kind: 'updateVolume', volume: remote('data', 'odb', 'h', 2n) }],
    },
    {
      what: 'another volume takes the place of one that is detached first',
      wanted: { volumes: ready(disk('root', 'oda'), remote('data', 'odb', 'other')) },
      changes: [{ kind: 'detachVolume', name: 'data' }],
    },
    {
      what: 'what takes the place of something is not attached while the runtime still shows that',
      has: {
        spec: { volumes: [disk('root', 'oda')], networkInterfaces: [] },
        status: { volumes: [{ name: 'data' }], networkInterfaces: [{ name: 'eth' }] },
      },
      changes: [],
      waits: [
        { reason: 'NetworkInterfaceNotReady', message: 'eth waits for the runtime to detach the former one' },
        { reason: 'VolumeNotReady', message: 'data waits for the runtime to detach the former one' },
      ],
    },
    {
      what: 'a volume at another device is detached first',
      wanted: { volumes: ready(disk('root', 'oda'), remote('data', 'odz', 'h')) },
      changes: [{ kind: 'detachVolume', name: 'data' }],
    },
    {
      what: 'a volume with another key is detached first',
      has: {
        spec: { volumes: [disk('root', 'oda'), remote('data', 'odb', 'h', 1n, { secretData: { k: IGNITION } })] },
      },
      wanted: {
        volumes: ready(disk('root', 'oda'), remote('data', 'odb', 'h', 1n, { secretData: { k: Buffer.from('new') } })),
      },
      changes: [{ kind: 'detachVolume', name: 'data' }],
    },
    {
      what: 'a volume whose secrets and attributes the runtime keeps to itself stays',
      wanted: {
        volumes: ready(
          disk('root', 'oda'),
          remote('data', 'odb', 'h', 1n, { secretData: { k: IGNITION }, attributes: { a: 'b' } }),
        ),
      },
      changes: [],
    },
    {
      what: 'a volume to which the runtime has added attributes stays',
      has: {
        spec: { volumes: [disk('root', 'oda'), remote('data', 'odb', 'h', 1n, { attributes: { a: 'b', c: 'd' } })] },
      },
      wanted: { volumes: ready(disk('root', 'oda'), remote('data', 'odb', 'h', 1n, { attributes: { a: 'b' } })) },
      changes: [],
    },
    ...labelled.map(({ of, shown, isSame }) => {
      const data = (labels: object): Volume => remote('data', 'odb', 'h', 1n, { attributes: { a: 'b', ...labels } });
      return {
        what: `a volume of which the runtime shows labels ${of} ${isSame ? 'stays' : 'is detached first'}`,
        has: { spec: { volumes: [disk('root', 'oda'), data(shown('volume'))] } },
        wanted: { volumes: ready(disk('root', 'oda'), data(labelsOf('volume', { [FLAGGED]: '2' }))) },
        changes: isSame ? [] : [{ kind: 'detachVolume' as const, name: 'data' }],
      };
    }),
    ...(['nic', 'network'] as const).flatMap((kind) =>
      labelled.map(({ of, shown, isSame }) => {
        const wanted = { a: 'b', ...labelsOf(kind, { [FLAGGED]: '2' }) };
        return {
          what: `a network interface of which the runtime shows labels of its ${kind} ${of} ${isSame ? 'stays' : 'is detached first'}`,
          has: { spec: { networkInterfaces: [{ ...nic('eth'), attributes: { a: 'b', ...shown(kind) } }] } },
          wanted: { networkInterfaces: ready({ ...nic('eth'), attributes: wanted }) },
          changes: isSame ? [] : [{ kind: 'detachNetworkInterface' as const, name: 'eth' }],
        };
      }),
    ),
    ...[
      { of: 'an ephemeral Volume that was lost and made anew', isEphemeral: true, isKept: true },
      { of: 'an ephemeral Volume of another name', isEphemeral: true, name: 'w', isKept: false },
      {
        of: 'an ephemeral Volume whose provider has given it another disk',
        isEphemeral: true,
        uid: '2',
        isKept: false,
      },
      { of: 'a Volume that somebody made anew', isEphemeral: false, isKept: false },
      { of: 'an ephemeral Volume with the same disk and another key', isEphemeral: true, handle: 'h', isKept: false },
      { of: 'an ephemeral Volume, where the runtime shows no labels', isEphemeral: true, isMute: true, isKept: false },
    ].map(({ of, isEphemeral, name = 'v', uid = '1', handle = 'i', isMute = false, isKept }) => {
      const source = isEphemeral ? { ephemeral: { volumeTemplate: {} } } : { volumeRef: { name: 'v' } };
      const secretData = { k: IGNITION };
      const shown = isMute ? {} : labelsOf('volume', { name, uid });
      const has = remote('data', 'odb', 'h', 1n, { attributes: shown, secretData: { k: Buffer.from('old') } });
      const wanted = remote('data', 'odb', handle, 5n, { attributes: labelsOf('volume', { uid: '2' }), secretData });
      return {
        what: `the disk of ${of} ${isKept ? 'stays, and that is told' : 'is detached first'}`,
        machine: machineOf({ volumes: [{ name: 'data', device: 'odb', ...source }] }),
        has: { spec: { volumes: [disk('root', 'oda'), has] } },
        wanted: { volumes: ready(disk('root', 'oda'), wanted) },
        changes: isKept ? [] : [{ kind: 'detachVolume' as const, name: 'data' }],
        waits: isKept
          ? [
              {
                reason: 'VolumeNotReady',
                message: expect.stringMatching(/^Volume of data was lost .* remove data from/),
              },
            ]
          : [],
      };
    }),
    {
      what: 'a network interface stays while its Network has no provider ID',
      wanted: { networkInterfaces: ready({ ...nic('eth'), networkId: '' }) },
      changes: [],
    },
    {
      what: 'a volume stays while it is not ready',
      wanted: { volumes: new Map<string, Needed<Volume>>([...ready(disk('root', 'oda')), ['data', { why: 'no' }]]) },
      changes: [],
    },
    ...[
      { handle: 'i', ip: '10.0.0.2', isExchanged: true, stays: false },
      { handle: 'i', ip: '10.0.0.2', isExchanged: false, stays: true },
      { handle: 'h', ip: '10.0.0.1', isExchanged: true, stays: true },
    ].flatMap(({ handle, ip, isExchanged, stays }) => {
      const is = `in the place of which ${handle === 'h' ? 'the same' : 'another'} is wanted that another Machine has`;
      const ends = `${stays ? 'stays' : 'makes way'}${isExchanged ? ', where that gives it for this' : ''}`;
      return [
        {
          what: `a volume ${is} ${ends}`,
          wanted: {
            volumes: new Map<string, Needed<Volume>>([
              ...ready(disk('root', 'oda')),
              ['data', { why: 'held', held: remote('data', 'odb', handle) }],
            ]),
          },
          ...(isExchanged && { exchanged: { gives: ['volume ceph h'], wants: [`volume ceph ${handle}`] } }),
          changes: stays ? [] : [{ kind: 'detachVolume' as const, name: 'data' }],
        },
        {
          what: `a network interface ${is} ${ends}`,
          wanted: { networkInterfaces: new Map([['eth', { why: 'held', held: nic('eth', ip) }]]) },
          ...(isExchanged && { exchanged: { gives: ['address net 10.0.0.1'], wants: [`address net ${ip}`] } }),
          changes: stays ? [] : [{ kind: 'detachNetworkInterface' as const, name: 'eth' }],
        },
      ];
    }),
    {
      what: 'a network interface gives no address that it is to have beside one that another Machine has, nor one that another of its Machine is to have',
      has: {
        spec: { networkInterfaces: [{ ...nic('eth'), ips: ['10.0.0.1', '10.0.0.2', '10.0.0.3'] }] },
      },
      wanted: {
        networkInterfaces: new Map<string, Needed<NetworkInterface>>([
          ['eth', { why: 'held', held: { ...nic('eth'), ips: ['10.0.0.1', '10.0.0.4'] } }],
          ['other', { why: 'held', held: nic('other', '10.0.0.2') }],
        ]),
      },
      exchanged: { gives: ['address net 10.0.0.3'], wants: ['address net 10.0.0.1', 'address net 10.0.0.4'] },
      changes: [{ kind: 'detachNetworkInterface', name: 'eth' }],
    },
    {
      what: 'a disk of the pool is never taken away for a Volume, which is told',
      wanted: { volumes: ready(remote('root', 'oda', 'r'), remote('data', 'odb', 'h')) },
      changes: [],
      waits: [{ reason: 'VolumeNotReady', message: expect.stringContaining('Volume of root is not attached') }],
    },
    {
      what: 'a Volume gives its place to a disk of the pool',
      wanted: { volumes: ready(disk('root', 'oda'), disk('data', 'odb')) },
      changes: [{ kind: 'detachVolume', name: 'data' }],
    },
    {
      what: 'a volume of which the runtime shows no source stays',
      has: {
        spec: {
          volumes: [
            wireMessage(Volume, { name: 'root', device: 'oda' }),
            wireMessage(Volume, { name: 'data', device: 'odb' }),
          ],
        },
      },
      changes: [],
    },
    {
      what: 'a disk of the pool is never taken away for its size',
      wanted: { volumes: ready(disk('root', 'oda', 'x', 5n), remote('data', 'odb', 'h')) },
      changes: [],
    },
    {
      what: 'a network interface with another address is detached first',
      wanted: { networkInterfaces: ready(nic('eth', '10.0.0.2')) },
      changes: [{ kind: 'detachNetworkInterface', name: 'eth' }],
    },
    ...[{ ips: [] }, { networkId: '' }, { ips: [], networkId: '' }].map((hidden) => ({
      what: `a network interface of which the runtime shows no ${Object.keys(hidden).join(' and no ')} stays`,
      has: { spec: { networkInterfaces: [{ ...nic('eth'), ...hidden }] } },
      changes: [],
    })),
    {
      what: 'a network interface in another network is detached first, also where no addresses are shown',
      has: { spec: { networkInterfaces: [{ ...nic('eth'), ips: [], networkId: 'other' }] } },
      changes: [{ kind: 'detachNetworkInterface', name: 'eth' }],
    },
    {
      what: 'a volume whose size the runtime does not show is not updated',
      has: { spec: { volumes: [disk('root', 'oda'), remote('data', 'odb', 'h', 0n)] } },
      changes: [],
    },
    {
      what: 'a network interface stays while it is not ready',
      wanted: { networkInterfaces: new Map([['eth', { why: 'no' }]]) },
      changes: [],
    },
    {
      what: 'a missing network interface is attached',
      has: { spec: { networkInterfaces: [] } },
      changes: [{ kind: 'attachNetworkInterface', networkInterface: nic('eth') }],
    },
    {
      what: 'it is switched off',
      machine: machineOf({ power: 'Off' }),
      changes: [{ kind: 'power', power: Power.POWER_OFF }],
    },
    {
      what: 'it is switched on',
      machine: machineOf({ power: 'On' }),
      has: { spec: { power: Power.POWER_OFF } },
      changes: [{ kind: 'power', power: Power.POWER_ON }],
    },
    {
      what: 'the generation of the Machine is noted, and what others have noted stays',
      machine: machineOf({}, { generation: 2 }),
      has: { metadata: { generation: 7n, annotations: { ...ANNOTATIONS, theirs: 'x' } } },
      changes: [
        {
          kind: 'annotate',
          annotations: {
            ...ANNOTATIONS,
            theirs: 'x',
            'machinepoollet.ironcore.dev/machine-generation': '2',
            'machinepoollet.ironcore.dev/irimachine-generation': '7',
          },
        },
      ],
    },
    {
      what: 'that its own generation has moved on is no reason to write',
      has: { metadata: { generation: 7n } },
      changes: [],
    },
  ];
  test.each(rows)('$what', ({ has, wanted, machine = machineOf(), changes, waits, exchanged }) => {
    const kept = existing('a', has);

    const situation = { machine, existing: [kept], desired: { ...WANTED, ...wanted } };
    const decision = decideMachine(
      situationOf({ ...situation, isExchange: (one) => isDeepStrictEqual(one, exchanged) }),
    );

    expect(decision).toMatchObject({ kind: 'keep', machine: kept, duplicates: [], changes, ...(waits && { waits }) });
  });

  test('the oldest of several is kept, the others go, and nothing else is done', () => {
    const old = existing('b', { metadata: { createdAt: 1n } });
    const going = existing('c', { metadata: { createdAt: 0n, deletedAt: 9n } });
    const desired = { ...WANTED, volumes: ready(disk('root', 'oda')) };

    const decision = decideMachine(situationOf({ desired, existing: [going, existing('a'), old] }));

    expect(decision).toMatchObject({ kind: 'keep', machine: old, duplicates: ['a'], changes: [] });
  });

  test('a disk of the pool stays, whatever the runtime calls its image', () => {
    const kept = existing('a', {
      spec: { volumes: [disk('root', 'oda', 'x@sha256:1', 5n), remote('data', 'odb', 'h')] },
    });
    expect(decideMachine(situationOf({ existing: [kept] }))).toMatchObject({ kind: 'keep', changes: [] });
  });

  test('the one that the Machine has is kept, although an older one has shown up', () => {
    const late = existing('b', { metadata: { createdAt: 1n } });
    const known = existing('a');
    const machine = { ...machineOf(), status: { machineID: 'runtime://a' } };

    expect(decideMachine(situationOf({ machine, existing: [late, known] }))).toMatchObject({
      machine: known,
      duplicates: ['b'],
    });
    const going = existing('a', { metadata: { deletedAt: 9n } });
    expect(decideMachine(situationOf({ machine, existing: [going, late] }))).toMatchObject({
      machine: late,
      duplicates: [],
    });
  });

  test('one that is going is waited for', () => {
    const going = existing('a', { metadata: { deletedAt: 9n } });
    expect(decideMachine(situationOf({ existing: [going] }))).toEqual({
      kind: 'look',
      afterMs: 1_000,
      why: 'machine a is being deleted',
    });
  });
});

describe('a Machine that is being deleted', () => {
  const machine = machineOf({}, { deletionTimestamp: '2026-01-02T00:00:00Z' });

  test('has all its machines deleted, those that are going not again', () => {
    const left = [existing('a'), existing('b', { metadata: { deletedAt: 9n } })];
    expect(decideMachine(situationOf({ machine, existing: left }))).toEqual({ kind: 'delete', left, ids: ['a'] });
  });

  test('is kept while a machine may be on its way', () => {
    expect(decideMachine(situationOf({ machine, uncertainMs: 5 }))).toMatchObject({ kind: 'look', afterMs: 5 });
  });

  test('is let go when none is left, whatever it was waiting for', () => {
    const desired = { ...WANTED, ignition: { why: 'no' } };
    expect(decideMachine(situationOf({ machine, desired }))).toEqual({ kind: 'finish' });
  });
});

/** Does at the runtime what was decided. */
function apply(store: MachineStore, id: string, changes: readonly RuntimeChange[]): void {
  for (const change of changes) {
    switch (change.kind) {
      case 'detachVolume':
        store.detachVolume(id, change.name);
        break;
      case 'detachNetworkInterface':
        store.detachNetworkInterface(id, change.name);
        break;
      case 'attachVolume':
        store.attachVolume(id, structuredClone(change.volume));
        break;
      case 'updateVolume':
        store.updateVolume(id, structuredClone(change.volume));
        break;
      case 'attachNetworkInterface':
        store.attachNetworkInterface(id, structuredClone(change.networkInterface));
        break;
      case 'power':
        store.setPower(id, change.power);
        break;
      case 'annotate':
        store.annotate(id, { ...change.annotations });
        break;
    }
  }
}

describe('whatever is wanted, one thing after the other', () => {
  const names = ['a', 'b', 'c'];
  const volume = fc.oneof(
    fc.constant(undefined),
    fc.record({ handle: fc.constantFrom('h', 'i'), size: fc.bigInt(1n, 3n), isReady: fc.boolean() }),
  );
  const address = fc.oneof(
    fc.constant(undefined),
    fc.record({ ip: fc.constantFrom('10.0.0.1', '10.0.0.2'), isReady: fc.boolean() }),
  );
  const wish = fc.record({
    volumes: fc.tuple(volume, volume, volume),
    nics: fc.tuple(address, address),
    power: fc.constantFrom('On' as const, 'Off' as const),
    generation: fc.integer({ min: 1, max: 5 }),
  });
  const whenReady = <T>(isReady: boolean, one: T): Needed<T> => (isReady ? { ready: one } : { why: 'no' });

  // promise: machines-ironcore/nothing-detached-stays-same
  // promise: ironcore/machines/network-interfaces-changed
  test('the runtime comes to rest as it is wanted, and nothing that stays the same is touched', () => {
    fc.assert(
      fc.property(fc.array(wish, { minLength: 1, maxLength: 4 }), (wishes) => {
        const store = new MachineStore();
        store.quantities.set('small', 1n);
        const { id } = store.create(runtimeMachine({ labels: LABELS }, { class: 'small' })).metadata;
        for (const { volumes, nics, power, generation } of wishes) {
          const desired: DesiredMachine = {
            ...WANTED,
            volumes: new Map(
              volumes.flatMap((one, at) => {
                const name = names[at] ?? '';
                return one === undefined
                  ? []
                  : [[name, whenReady(one.isReady, remote(name, `od${name}`, one.handle, one.size))] as const];
              }),
            ),
            networkInterfaces: new Map(
              nics.flatMap((one, at) => {
                const name = `n${at}`;
                return one === undefined ? [] : [[name, whenReady(one.isReady, nic(name, one.ip))] as const];
              }),
            ),
          };
          const before = structuredClone(store.get(id));
          const machine = machineOf({ power }, { generation });
          const touched: string[] = [];
          for (let round = 0; round < 3; round++) {
            const decision = decideMachine(situationOf({ machine, desired, existing: store.all() }));
            if (decision.kind !== 'keep') throw new Error(decision.kind);
            touched.push(...decision.changes.flatMap((one) => (one.kind === 'detachVolume' ? [one.name] : [])));
            apply(store, id, decision.changes);
          }
          expect(decideMachine(situationOf({ machine, desired, existing: store.all() }))).toMatchObject({
            changes: [],
          });
          const now = store.get(id).spec;
          expect(now.power).toBe(power === 'Off' ? Power.POWER_OFF : Power.POWER_ON);
          for (const [name, want] of desired.volumes) {
            const had = before.spec.volumes.find((one) => one.name === name);
            const expected = 'ready' in want ? want.ready : had;
            expect(now.volumes.find((one) => one.name === name)).toEqual(expected);
          }
          expect(now.volumes.every(({ name }) => desired.volumes.has(name))).toBe(true);
          expect(now.networkInterfaces.every(({ name }) => desired.networkInterfaces.has(name))).toBe(true);
          // Detached were only those that went, or became another volume; and each once.
          expect(new Set(touched).size).toBe(touched.length);
          const stayed = before.spec.volumes.filter(({ name, connection }) => {
            const want = desired.volumes.get(name);
            return want !== undefined && (!('ready' in want) || want.ready.connection?.handle === connection?.handle);
          });
          expect(stayed.filter(({ name }) => touched.includes(name))).toEqual([]);
        }
      }),
      { numRuns: 300 },
    );
  });
});
