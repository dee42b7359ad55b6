import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Capabilities, ListedMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { FakeDriver } from '../../machine/fake-world.ts';
import { describeProof, Evidence, proofFields, type Sight } from './evidence.ts';
import { identify, isOfNamespace, ownershipOf } from './ownership.ts';
import { survey } from './survey.ts';

const MINUTE_MS = 60_000;
const signal = new AbortController().signal;

function at(atMs: number): Sight {
  return { atMs, wallMs: Date.UTC(2026, 0, 1) + atMs, vms: 4, machines: 3 };
}

describe('evidence', () => {
  test('is a proof only when a second look, a grace later, shows the same', () => {
    const evidence = new Evidence(MINUTE_MS);

    expect(evidence.see('vm', 'class', at(0))).toBeUndefined();
    expect(evidence.see('vm', 'class', at(MINUTE_MS - 1))).toBeUndefined();
    const proof = evidence.see('vm', 'class', at(MINUTE_MS));

    expect(proof && describeProof(proof)).toBe(
      'seen at 00:00:00 among 4 VMs, before 3 Machines were read, and at 00:01:00 among 4, before 3: 60 s apart',
    );
  });

  test('is logged with times that a reader can use', () => {
    const proof = { first: at(560_385.827), second: at(680_385.827) };

    expect(proofFields(proof)).toEqual({
      first: { at: '2026-01-01T00:09:20Z', vms: 4, machines: 3 },
      second: { at: '2026-01-01T00:11:20Z', vms: 4, machines: 3 },
      ms: 120_000,
    });
  });

  test.each([
    { what: 'a look in between did not show it', unseen: [], isKept: false },
    { what: 'its class could not be listed in between', unseen: ['class'], isKept: true },
  ])('$what: kept $isKept', ({ unseen, isKept }) => {
    const evidence = new Evidence(MINUTE_MS);
    evidence.see('vm', 'class', at(0));

    evidence.keep(new Set(), new Set(unseen));

    expect(evidence.see('vm', 'class', at(MINUTE_MS)) !== undefined).toBe(isKept);
  });

  test('from before an outage counts for nothing', () => {
    const evidence = new Evidence(MINUTE_MS);
    evidence.see('vm', 'class', at(0));

    evidence.dropBefore(1);

    expect(evidence.see('vm', 'class', at(MINUTE_MS))).toBeUndefined();
  });
});

describe('a listed VM', () => {
  const vm: ListedMachine = { providerID: 'sim:///m-1', machineName: 'm-1', machineUID: 'uid-of-machine-m-1' };
  const withID = (providerID: string): Machine => machine((o) => void (o.spec.providerID = providerID));
  const inPhase = (phase: 'CrashLoopBackOff' | 'Failed' | ''): Machine =>
    machine((o) => {
      o.spec.providerID = '';
      o.status.currentStatus.phase = phase;
    });

  test.each([
    { what: 'whose id a Machine has', machines: [machine()], uid: vm.machineUID, want: 'owned' },
    {
      what: 'whose id a Machine of another name has',
      machines: [machine((o) => void (o.metadata.name = 'x'))],
      uid: undefined,
      want: 'owned',
    },
    { what: 'whose Machine does not exist', machines: [], uid: vm.machineUID, want: 'none' },
    { what: 'whose Machine has another VM', machines: [withID('sim:///other')], uid: vm.machineUID, want: 'none' },
    { what: 'whose Machine is being made', machines: [inPhase('')], uid: vm.machineUID, want: 'in-creation' },
    {
      what: 'whose name a Machine of another UID has that is being made',
      machines: [inPhase('CrashLoopBackOff')],
      uid: 'old',
      want: 'in-creation',
    },
    {
      what: 'whose Machine failed without knowing it',
      machines: [inPhase('Failed')],
      uid: vm.machineUID,
      want: 'owned',
    },
    { what: 'of an earlier Machine of that name', machines: [inPhase('Failed')], uid: 'old', want: 'none' },
  ] as const)('$what is $want', ({ machines, uid, want }) => {
    expect(ownershipOf({ ...vm, machineUID: uid }, identify(machines))).toBe(want);
  });
});

test.each([
  { carries: 'the namespace of the class', machineNamespace: 'default', listScope: 'class', isOurs: true },
  { carries: 'another namespace', machineNamespace: 'other', listScope: 'class', isOurs: false },
  { carries: 'no namespace', machineNamespace: undefined, listScope: 'class', isOurs: true },
  { carries: 'the namespace of the class', machineNamespace: 'default', listScope: 'cluster', isOurs: true },
  { carries: 'another namespace', machineNamespace: 'other', listScope: 'cluster', isOurs: false },
  { carries: 'no namespace', machineNamespace: undefined, listScope: 'cluster', isOurs: false },
] as const)('a VM that carries $carries, listed by $listScope, may be ours: $isOurs', (row) => {
  const vm = {
    providerID: 'sim:///a',
    machineName: 'a',
    machineUID: undefined,
    machineNamespace: row.machineNamespace,
  };

  expect(isOfNamespace(vm, 'default', row.listScope)).toBe(row.isOurs);
});

describe('a survey', () => {
  class Listing extends FakeDriver {
    readonly #vms: readonly ListedMachine[] | Error;

    constructor(vms: readonly ListedMachine[] | Error) {
      super();
      this.#vms = vms;
      this.methods = new Set(['ListMachines']);
    }

    override list(): Promise<readonly never[]> {
      // The fake lists nothing by its type.
      return this.#vms instanceof Error ? Promise.reject(this.#vms) : Promise.resolve(this.#vms as readonly never[]);
    }
  }

  class Unable extends FakeDriver {
    override async capabilities(): Promise<Capabilities> {
      return { ...(await super.capabilities()), methods: new Set() };
    }
  }

  test('looks at the other classes when one cannot be listed, and reads the Machines afterwards', async () => {
    const failure = new DriverError('Unavailable', 'no answer');
    const listed = [
      { providerID: 'sim:///a', machineName: 'a', machineUID: undefined },
      { providerID: 'sim:///b', machineName: 'b', machineUID: undefined, machineNamespace: 'other' },
    ];
    const drivers = { good: new Listing(listed), bad: new Listing(failure), unable: new Unable() };
    const classes = Object.keys(drivers).map((name) => machineClass((o) => void (o.metadata.name = name)));

    const seen = await survey(
      {
        drivers: {
          resolve: ({ metadata }) => drivers[metadata.name as keyof typeof drivers],
          all: () => Object.values(drivers),
        },
        secrets: { of: () => Promise.resolve({ data: {}, missing: [], fingerprint: '' }) },
        reader: {
          get: () => Promise.reject(new Error('not asked for')),
          list: () => Promise.resolve({ metadata: { resourceVersion: '7' }, items: [] }),
        },
        namespace: 'default',
      },
      classes,
      signal,
    );

    const [ours, foreign] = listed;
    expect(seen.lists.map(({ key, vms, foreign: others }) => [key, vms, others])).toEqual([
      ['default/good', [ours], [foreign]],
    ]);
    expect(seen.failures).toEqual([{ key: 'default/bad', error: failure }]);
  });
});
