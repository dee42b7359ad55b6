import { expect, test } from '@jest/globals';

import { machine, machineClass, machineSet } from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { ListedMachine } from '../../driver/driver.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { DriverError } from '../../driver/error.ts';
import { machines } from '../../kube/client/resource.ts';
import { MACHINE_INDEXES } from '../../operator/indexes/machine-indexes.ts';
import { FakeDriver } from '../../../test/fakes/driver.ts';
import { noteOfForcedRemoval } from '../vms/forced-removals.ts';
import { findOwnerlessVMs } from './ownerless-vms.ts';

interface Row {
  readonly title: string;
  readonly listed: readonly ListedMachine[];
  readonly owners: readonly BuiltMachine[];
  readonly note?: Record<string, string>;
  readonly isDriven?: boolean;
  /** Provider id that a Node shows. */
  readonly nodeOf?: string;
  /** What class-2 lists; the same, unless told otherwise. */
  readonly otherList?: readonly ListedMachine[] | Error;
  /** class-3, if it is there. */
  readonly third?: BuiltMachineClass;
  readonly cleansUp?: boolean;
  readonly listScope?: 'class' | 'cluster';
  readonly sets?: readonly MachineSet[];
  /** Of class-2. */
  readonly other?: (c: BuiltMachineClass) => void;
  /** Machines of other namespaces with the same target cluster. */
  readonly elsewhere?: readonly BuiltMachine[];
  readonly want: string;
}

type BuiltMachine = ReturnType<typeof machine>;
type BuiltMachineClass = ReturnType<typeof machineClass>;

const VM: ListedMachine = { providerID: 'sim:///m-1', machineName: 'm-1', machineUID: undefined };

const GONE = noteOfForcedRemoval(
  machine((m) => {
    m.metadata.uid = 'uid-of-former';
    m.spec.providerID = VM.providerID;
  }),
);
/** It has the name of the Machine that was let go. */
const namesake = (change: (m: BuiltMachine) => void): BuiltMachine =>
  machine((m) => {
    m.metadata.uid = 'uid-of-namesake';
    m.spec.class = { kind: 'MachineClass', name: 'class-2' };
    change(m);
  });
const withVM = (providerID: string): BuiltMachine => namesake((m) => void (m.spec.providerID = providerID));
const withoutVM = namesake((m) => delete m.spec.providerID);

/** In a list of a whole cluster: a Machine of class-2, its VM, and VMs without Machine of its set and of no set that is known. */
const USER = namesake((m) => {
  m.metadata.name = 'used-x';
  m.spec.providerID = 'sim:///used-x';
});
const [ITS, BESIDE, UNKNOWN] = ['used-x', 'used-y', 'lost-z'].map((name) => ({
  providerID: `sim:///${name}`,
  machineName: name,
  machineUID: undefined,
  machineNamespace: 'default',
})) as [ListedMachine, ListedMachine, ListedMachine];

const FAILURE = new DriverError('InvalidArgument', 'invalid spec');
const class3 = machineClass(
  (c) => void Object.assign(c.metadata, { name: 'class-3', finalizers: [MACHINE_FINALIZER] }),
);
const userOf = (className: string): BuiltMachine =>
  machine((m) => {
    m.metadata.name = `user-of-${className}`;
    m.spec = { class: { kind: 'MachineClass', name: className }, providerID: `sim:///user-of-${className}` };
  });

const LOST = machineSet((s) => {
  s.metadata.name = 'lost';
  s.spec.template.spec = { class: { kind: 'MachineClass', name: machineClass().metadata.name } };
});

// promise: deletion-policies/new-machine-same-name
test.each<Row>([
  { title: 'a VM without Machine', listed: [VM], owners: [], want: 'some' },
  { title: 'a VM whose Machine is there', listed: [VM], owners: [machine()], want: 'none' },
  { title: 'no VM', listed: [], owners: [], want: 'none' },
  { title: 'a provider without driver', listed: [VM], owners: [], isDriven: false, want: 'unknown' },
  { title: 'a VM of a Machine let go by force', listed: [VM], owners: [], note: GONE, want: 'some' },
  {
    title: 'that VM, with a Machine of its name and another VM',
    listed: [VM],
    owners: [withVM('x')],
    note: GONE,
    want: 'some',
  },
  {
    title: 'that VM, with a Machine of its name that is being made',
    listed: [VM],
    owners: [withoutVM],
    note: GONE,
    want: 'some',
  },
  {
    title: 'that VM, taken over by a Machine of its name',
    listed: [VM],
    owners: [withVM(VM.providerID)],
    note: GONE,
    want: 'none',
  },
  {
    title: 'the VM of a Machine of its name alone',
    listed: [{ ...VM, providerID: 'x' }],
    owners: [withVM('x')],
    note: GONE,
    want: 'none',
  },
  { title: 'no VM, but its Node', listed: [], owners: [], note: GONE, nodeOf: VM.providerID, want: 'some' },
  {
    title: 'no VM, but what the driver is yet to delete',
    listed: [],
    owners: [],
    note: GONE,
    cleansUp: true,
    want: 'some',
  },
  {
    title: 'a VM whose Machine is of another class by now, which does not list it',
    listed: [VM],
    owners: [withVM(VM.providerID)],
    otherList: [],
    want: 'some',
  },
  {
    title: 'a VM of a name whose Machine is made with another class, which does not list it',
    listed: [VM],
    owners: [withoutVM],
    otherList: [{ ...VM, providerID: 'sim-2:///m-1' }],
    want: 'some',
  },
  {
    title: 'a VM whose Machine is of a class that is gone',
    listed: [VM],
    owners: [namesake((m) => void (m.spec.class = { kind: 'MachineClass', name: 'gone' }))],
    want: 'some',
  },
  {
    title: 'a VM of this class whose Machine names another one by now',
    listed: [VM],
    owners: [
      namesake((m) => void (m.metadata.annotations = { 'machine.sapcloud.io/vm-class': machineClass().metadata.name })),
    ],
    otherList: [],
    want: 'none',
  },
  {
    title: 'a VM without a namespace that a Machine of another one has',
    listed: [VM],
    owners: [],
    elsewhere: [machine((m) => void (m.metadata.namespace = 'other'))],
    want: 'none',
  },
  {
    title: 'a VM of this namespace, although a Machine of another one has its name',
    listed: [{ ...VM, machineNamespace: 'default' }],
    owners: [],
    elsewhere: [
      machine((m) => {
        m.metadata.namespace = 'other';
        delete m.spec.providerID;
      }),
    ],
    want: 'some',
  },
  {
    title: 'a VM told with this namespace that only a Machine of another one has recorded',
    listed: [{ ...VM, machineNamespace: 'default' }],
    owners: [],
    elsewhere: [machine((m) => void (m.metadata.namespace = 'other'))],
    want: 'none',
  },
  { title: 'a VM known by name, without such a note', listed: [VM], owners: [withVM('x')], want: 'none' },
  ...[
    { title: 'a VM of a set of another class', listed: [ITS, BESIDE], owners: [USER], want: 'none' },
    {
      title: 'a VM of a set of another class, which is not held',
      listed: [BESIDE],
      owners: [USER],
      other: (c: BuiltMachineClass) => void (c.metadata.finalizers = []),
      want: 'some',
    },
    {
      title: 'a VM of a set of this class',
      listed: [{ ...BESIDE, machineName: 'm-y' }],
      owners: [machine(), USER],
      want: 'some',
    },
    {
      title: 'a VM of a set of this class that has no Machine',
      listed: [UNKNOWN],
      owners: [USER],
      sets: [LOST],
      want: 'some',
    },
    { title: 'a VM of an unknown class beside a class in use', listed: [ITS, UNKNOWN], owners: [USER], want: 'none' },
    { title: 'a VM of an unknown class beside a class that nobody uses', listed: [UNKNOWN], owners: [], want: 'some' },
    {
      title: 'a VM of an unknown class beside a class in use that does not list it',
      listed: [UNKNOWN],
      otherList: [ITS],
      owners: [USER],
      want: 'some',
    },
    {
      title: 'a VM of an unknown class beside a class in use with another Secret, which lists it',
      listed: [UNKNOWN],
      owners: [USER],
      other: (c: BuiltMachineClass) => void (c.secretRef = { name: 'another', namespace: 'default' }),
      want: 'none',
    },
    {
      title: 'a VM of an unknown class beside a class in use of another driver',
      listed: [UNKNOWN],
      owners: [USER],
      other: (c: BuiltMachineClass) => void (c.provider = 'another'),
      want: 'some',
    },
    {
      title: 'a VM of an unknown class beside a class in use that cannot be listed',
      listed: [ITS, UNKNOWN],
      otherList: FAILURE,
      owners: [USER],
      want: 'some',
    },
    {
      title: 'a VM of an unknown class beside a class in use that cannot be listed, and one that lists it',
      listed: [UNKNOWN],
      otherList: FAILURE,
      third: class3,
      owners: [USER, userOf('class-3')],
      want: 'none',
    },
    {
      title: 'a VM of a set of another class, which cannot be listed',
      listed: [ITS, BESIDE],
      otherList: FAILURE,
      owners: [USER],
      want: 'some',
    },
    {
      title: 'a VM of a Machine of another class, which cannot be listed',
      listed: [ITS],
      otherList: FAILURE,
      owners: [USER],
      want: 'unknown',
    },
    {
      title: 'a VM of a Machine whose class is gone, beside a class in use',
      listed: [UNKNOWN],
      owners: [
        USER,
        machine((m) => {
          m.metadata.name = UNKNOWN.machineName;
          m.spec = { class: { kind: 'MachineClass', name: 'gone' }, providerID: UNKNOWN.providerID };
        }),
      ],
      want: 'none',
    },
    {
      title: 'a VM let go by force from this class, although its name is of a set of another class',
      listed: [{ ...BESIDE, providerID: VM.providerID, machineName: 'm-1' }],
      note: GONE,
      owners: [
        USER,
        namesake((m) => {
          m.metadata.name = 'm-2';
          m.spec.providerID = 'sim:///m-2';
        }),
      ],
      want: 'some',
    },
  ].map((row) => ({ ...row, title: `in a list of the whole cluster, ${row.title}`, listScope: 'cluster' as const })),
])('$title: $want', async ({ listed, owners, note = {}, isDriven = true, nodeOf, otherList = listed, ...row }) => {
  const { cleansUp = false, elsewhere = [], listScope = 'class', other = () => undefined, sets = [], want } = row;
  const driver = new FakeDriver();
  driver.listScope = listScope;
  driver.methods = new Set(['ListMachines']);
  // The fake lists nothing by its type.
  driver.list = (request) => {
    const shown = request?.machineClass.metadata.name === 'class-2' ? otherList : listed;
    if (shown instanceof Error) return Promise.reject(shown);
    return Promise.resolve(shown as readonly unknown[] as readonly never[]);
  };
  const reader = new MemoryClient();
  reader.put(machines, ...owners);
  const class2 = machineClass((c) => {
    Object.assign(c.metadata, { name: 'class-2', finalizers: [MACHINE_FINALIZER] });
    other(c);
  });
  const deps = {
    classes: new MemoryInformer(row.third === undefined ? [class2] : [class2, row.third]),
    drivers: {
      resolve: ({ provider }: BuiltMachineClass) => {
        if (!isDriven) return undefined;
        return provider === 'another' ? Object.assign(new FakeDriver(), { provider: 'another' }) : driver;
      },
      all: () => [driver],
    },
    sets: () => sets,
    secrets: { of: () => Promise.resolve({ data: {}, missing: [], fingerprint: '' }) },
    reader,
    namespace: 'default',
    machines: new MemoryInformer(elsewhere, MACHINE_INDEXES),
    hasNodeLeft: (providerID: string) => nodeOf === providerID,
    cleansUp,
    log: silentLogger,
  };

  const noting = machineClass((c) => void (c.metadata.annotations = note));
  expect(await findOwnerlessVMs(deps, noting, new AbortController().signal)).toBe(want);
});
