import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../../test/durations.ts';
import { machine, machineClass } from '../../../../test/builders.ts';
import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Capabilities, ListedMachine, VirtualMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { Store } from '../../../kube/cache/store.ts';
import { MACHINE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import { describeProof, Evidence, proofFields, type Snapshot } from './evidence.ts';
import { releaseOf } from '../../vms/orphan-release.ts';
import { orphanLimit } from './orphan-limit.ts';
import { identify, isOfNamespace, ownershipOf } from '../../vms/ownership.ts';
import { survey } from './survey.ts';
import { judgeTwin } from './collector.ts';

const signal = new AbortController().signal;

function at(atMs: number): Snapshot {
  return { atMs, wallMs: Date.UTC(2026, 0, 1) + atMs, vms: 4, machines: 3 };
}

describe('evidence', () => {
  test('is a proof only when a second look, a grace later, shows the same', () => {
    const evidence = new Evidence(MINUTE);

    expect(evidence.see('vm', 'class', at(0))).toBeUndefined();
    expect(evidence.see('vm', 'class', at(MINUTE - 1))).toBeUndefined();
    const proof = evidence.see('vm', 'class', at(MINUTE));

    expect(proof && describeProof(proof)).toBe(
      'found at 00:00:00 among 4 VMs, before 3 Machines were read, and at 00:01:00 among 4, before 3: 60 s apart',
    );
  });

  test('is logged with times that a reader can use', () => {
    const proof = { first: at(560_385.827), sinceMs: 560_385.827, second: at(680_385.827) };

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
    const evidence = new Evidence(MINUTE);
    evidence.see('vm', 'class', at(0));

    evidence.keep(new Set(), new Set(unseen));

    expect(evidence.see('vm', 'class', at(MINUTE)) !== undefined).toBe(isKept);
  });

  test('from before an outage counts for nothing', () => {
    const evidence = new Evidence(MINUTE);
    evidence.see('vm', 'class', at(0));

    evidence.dropBefore(1);

    expect(evidence.see('vm', 'class', at(MINUTE))).toBeUndefined();
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

  const named = (name: string, { metadata, ...rest }: Machine): Machine => ({
    metadata: { ...metadata, name },
    ...rest,
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
    {
      what: 'whose Machine has another VM of the list',
      machines: [withID('sim:///listed')],
      uid: vm.machineUID,
      want: 'none',
    },
    {
      what: 'whose Machine has a VM that is not listed',
      machines: [withID('sim:///other')],
      uid: vm.machineUID,
      want: 'other-id',
    },
    {
      what: 'of another UID whose Machine has a VM that is not listed',
      machines: [withID('sim:///other')],
      uid: 'old',
      want: 'other-id',
    },
    {
      what: 'whose Machine has the id of another Machine by mistake',
      machines: [
        withID('sim:///listed'),
        machine((o) => (Object.assign(o, { spec: { providerID: 'sim:///listed' } }).metadata.name = 'x')),
      ],
      uid: vm.machineUID,
      want: 'owned',
    },
    {
      what: 'of another name that carries the UID of a Machine whose VM is not listed',
      machines: [named('x', withID('sim:///other'))],
      uid: vm.machineUID,
      want: 'other-id',
    },
    {
      what: 'of another name that carries the UID of a Machine which has another VM of the list',
      machines: [named('x', withID('sim:///listed'))],
      uid: vm.machineUID,
      want: 'none',
    },
    {
      what: 'of another name that carries the UID of a Machine which is being made',
      machines: [named('x', inPhase(''))],
      uid: vm.machineUID,
      want: 'in-creation',
    },
    {
      what: 'that has the name of a Machine with another VM of the list, and the UID of one whose VM is not listed',
      machines: [
        machine((o) => (Object.assign(o, { spec: { providerID: 'sim:///listed' } }).metadata.uid = 'other')),
        named('x', withID('sim:///other')),
      ],
      uid: vm.machineUID,
      want: 'other-id',
    },
    { what: 'whose Machine is being made', machines: [inPhase('')], uid: vm.machineUID, want: 'in-creation' },
    {
      what: 'whose name a Machine of another UID has that is being made',
      machines: [inPhase('CrashLoopBackOff')],
      uid: 'old',
      want: 'in-creation',
    },
    {
      what: 'whose Machine has another VM of the list, which is being initialized',
      machines: [
        machine(
          (o) =>
            (Object.assign(o, { spec: { providerID: 'sim:///listed' } }).status.currentStatus.phase =
              'CrashLoopBackOff'),
        ),
      ],
      uid: vm.machineUID,
      want: 'none',
    },
    {
      what: 'whose Machine failed without knowing it',
      machines: [inPhase('Failed')],
      uid: vm.machineUID,
      want: 'owned',
    },
    { what: 'of an earlier Machine of that name', machines: [inPhase('Failed')], uid: 'old', want: 'none' },
    {
      what: 'of an earlier Machine of that name, when others know no VM either',
      machines: [
        inPhase('Failed'),
        machine((o) => (Object.assign(o, { spec: { providerID: '' } }).metadata.name = 'x')),
      ],
      uid: 'old',
      want: 'none',
    },
  ] as const)('$what is $want', ({ machines, uid, want }) => {
    const listed = new Set([vm.providerID, 'sim:///listed']);

    expect(ownershipOf({ ...vm, machineUID: uid }, identify(machines), (id) => listed.has(id))).toBe(want);
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
        machines: new Store<Machine>(MACHINE_INDEXES),
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

describe('a VM with the name of a Machine that has another one', () => {
  const vm: ListedMachine = { providerID: 'sim:///second', machineName: 'm-1', machineUID: undefined };

  test.each([
    { says: 'the VM that the Machine knows', answer: 'sim:///m-1', verdict: 'twin' },
    { says: 'that VM', answer: 'sim:///second', verdict: 'of-machine' },
    { says: 'that VM in another case', answer: 'sim:///SECOND', verdict: 'of-machine' },
    { says: 'nothing', answer: '', verdict: 'unknown' },
    {
      says: 'that VM, not initialized',
      answer: new DriverError('Uninitialized', '', { result: { providerID: 'sim:///second' } }),
      verdict: 'of-machine',
    },
    {
      says: 'another VM, not initialized',
      answer: new DriverError('Uninitialized', '', { result: { providerID: 'sim:///m-1' } }),
      verdict: 'twin',
    },
    { says: 'a VM without id, not initialized', answer: new DriverError('Uninitialized', ''), verdict: 'unknown' },
    { says: 'that there are several', answer: new DriverError('OutOfRange', ''), verdict: 'twin' },
    { says: 'that it cannot say', answer: new DriverError('Unimplemented', ''), verdict: 'twin' },
    { says: 'that there is none', answer: new DriverError('NotFound', ''), verdict: 'unknown' },
    { says: 'that it failed', answer: new DriverError('Internal', ''), verdict: 'unknown' },
    { says: 'something that is no answer', answer: new Error('broken'), verdict: 'unknown' },
  ])('is $verdict when GetMachineStatus says $says', async ({ answer, verdict }) => {
    class Answering extends FakeDriver {
      override getStatus(): Promise<VirtualMachine> {
        return answer instanceof Error
          ? Promise.reject(answer)
          : Promise.resolve({ providerID: answer, nodeName: 'm-1', addresses: [] });
      }
    }
    const access = { driver: new Answering(), machineClass: machineClass(), secretData: {} };

    expect(await judgeTwin(vm, machine(), access, signal)).toBe(verdict);
  });

  test('is that of the Machine when it has its UID, and GetMachineStatus says its id in another place', async () => {
    const driver = new FakeDriver();
    const answer = { providerID: 'sim:///a/i-0123456789abcdef0', nodeName: 'm-1', addresses: [] };
    driver.getStatus = () => Promise.resolve(answer);
    const known = machine();
    const listed = { ...vm, providerID: 'sim:///b/i-0123456789abcdef0', machineUID: known.metadata.uid };

    expect(await judgeTwin(listed, known, { driver, machineClass: machineClass(), secretData: {} }, signal)).toBe(
      'of-machine',
    );
  });
});

describe('VMs without a Machine that are due at once', () => {
  test.each([
    { listed: 0, limit: 3 },
    { listed: 39, limit: 3 },
    { listed: 40, limit: 4 },
    { listed: 2_000, limit: 200 },
  ])('may be $limit of $listed', ({ listed, limit }) => {
    expect(orphanLimit(listed)).toBe(limit);
  });

  const NOW = Date.UTC(2026, 0, 1, 12);
  test.each([
    { until: undefined, release: 'none' },
    { until: '2026-01-01T12:00:01Z', release: 'given' },
    { until: '2026-01-02T12:00:00Z', release: 'given' },
    { until: '2026-01-02T12:00:01Z', release: 'too-long' },
    { until: '2026-01-01T12:00:00Z', release: 'expired' },
    { until: '', release: 'malformed' },
    { until: 'true', release: 'malformed' },
    { until: '2027', release: 'malformed' },
  ])('may be more until $until: $release', ({ until, release }) => {
    const one = machineClass((o) => {
      if (until !== undefined) o.metadata.annotations[DELETE_ORPHAN_VMS_UNTIL_ANNOTATION] = until;
    });

    expect(releaseOf(one, NOW)).toBe(release);
  });
});
