import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, node, type BuiltMachine } from '../../../../test/builders.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { CLASS_INDEX, classIndex } from '../../../operator/indexes/class-index.ts';
import { MACHINE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import type { IndexFunctions } from '../../../kube/cache/store.ts';
import type { ChangeHandler, Informer } from '../../../kube/cache/lister.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { hold, type ReplacementHoldKind } from '../../machine-facts/replacement-hold.ts';
import { RemovedMachines } from '../removed-machines.ts';
import { DeletedMachines } from '../deleted-machines.ts';
import { OwnerlessVMs } from '../ownerless-vms.ts';
import { type OrphanVMsWakeDeps, wakeOrphanVMs } from './wake.ts';

const INDEXES: IndexFunctions<Machine> = { ...MACHINE_INDEXES, [CLASS_INDEX]: classIndex };

/** Tells of Machines as a cache does, and counts how often that makes the loop look. */
function watching(leads: boolean, others: readonly Machine[] = [], oneClass = machineClass()) {
  const handlers: ChangeHandler<Machine>[] = [];
  const seen = { looks: 0, warnings: 0 };
  let hastened = 0;
  const removed = new RemovedMachines();
  const gone = new DeletedMachines();
  const late: string[] = [];
  gone.onLate(({ name }) => late.push(name));
  const ownerless = new OwnerlessVMs();
  wakeOrphanVMs({
    machines: {
      ...({ onChange: (handler: ChangeHandler<Machine>) => void handlers.push(handler) } as Informer<Machine>),
      byIndex: (index, key) => others.filter((one) => INDEXES[index]?.(one).includes(key)),
    },
    classes: { onChange: () => undefined, get: () => oneClass } as unknown as OrphanVMsWakeDeps['classes'],
    queue: { add: () => undefined, addAfter: () => undefined },
    controller: { hurry: () => void (seen.looks += 1), hasten: () => void (hastened += 1) },
    trust: { trustedForMs: () => (leads ? 1 : 0) },
    removed,
    gone,
    ownerless,
    log: { ...silentLogger, warn: () => void (seen.warnings += 1) },
  });
  const tell = (old: Machine | undefined, current: Machine | undefined): void => {
    for (const handler of handlers) handler(old, current);
  };
  return { tell, seen, removed, late, gone, ownerless, hastened: () => hastened };
}

const withoutVM = (change: (m: BuiltMachine) => void = () => undefined): Machine =>
  machine((m) => {
    m.spec.providerID = '';
    delete m.metadata.labels['node'];
    m.status.currentStatus.phase = '';
    delete (m as Machine).status?.lastOperation;
    change(m);
  });
const WAITED = { type: 'Create', state: 'Failed', description: 'x' } as const;

test.each([
  { what: 'has a VM', gone: machine(), looks: 1 },
  { what: 'was never worked on', gone: withoutVM(), looks: 0 },
  {
    what: 'was never worked on and is shown a Node',
    gone: withoutVM((m) => (m.metadata.labels['node'] = 'n')),
    looks: 1,
  },
  {
    what: 'never had a VM and is being deleted',
    gone: withoutVM((m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      m.status.currentStatus.phase = 'Terminating';
      m.status.lastOperation = { ...WAITED, type: 'Delete' };
    }),
    looks: 0,
  },
  {
    what: 'was refused a VM by a driver that a former leader asked',
    gone: withoutVM((m) => {
      m.status.currentStatus.phase = 'CrashLoopBackOff';
      m.status.lastOperation = { ...WAITED, errorCode: 'Internal' };
    }),
    looks: 1,
  },
])('a Machine that vanishes and $what makes the loop look $looks times', ({ gone, looks }) => {
  const { tell, seen } = watching(true);

  tell(gone, undefined);

  expect(seen).toEqual({ looks, warnings: looks });
});

test('a Machine that vanishes while a VM may be made for it makes the loop look', () => {
  const { tell, seen, removed } = watching(true);
  const gone = withoutVM();
  removed.creatingVM(gone.metadata.uid);

  tell(gone, undefined);

  expect(seen).toEqual({ looks: 1, warnings: 1 });
});

test('the VM of a Machine that is gone already, once it is gone too, has its Nodes looked at', () => {
  const { tell, seen, removed, late } = watching(true);
  const gone = machine();
  removed.deletingVM(gone.metadata.uid);
  tell(gone, undefined);
  expect(late).toEqual([]);

  removed.deletedVM(gone.metadata.uid);

  expect(late).toEqual([gone.metadata.name]);
  expect(seen.looks).toBe(0);
});

describe('a VM that we deleted', () => {
  const gone = machine();
  const { uid } = gone.metadata;
  const { providerID = '' } = gone.spec;

  test.each<{ when: string; events: readonly ('vanishes' | 'ends')[] }>([
    { when: 'before its Machine', events: ['ends', 'vanishes'] },
    { when: 'after its Machine', events: ['vanishes', 'ends'] },
  ])('$when counts for no set any more, and is remembered', ({ events }) => {
    const world = watching(true);
    world.ownerless.replace([{ providerID, machineName: gone.metadata.name }]);
    world.removed.deletingVM(uid);

    for (const event of events)
      if (event === 'ends') world.removed.deletedVM(uid);
      else world.tell(gone, undefined);

    expect(world.ownerless.list()).toEqual([]);
    expect(world.gone.has(providerID)).toBe(true);
  });
});

describe('a Machine that was made again, whose VM has the ID of the earlier one,', () => {
  const MADE_FOR = { name: 'm-1', nodeName: 'm-1', providerID: 'ironcore://ns/m-1' };
  const again = (change: (m: BuiltMachine) => void = () => undefined): Machine =>
    machine((m) => {
      Object.assign(m.metadata, { name: 'm-1', uid: 'again', labels: { node: 'm-1' } });
      m.spec.providerID = MADE_FOR.providerID;
      change(m);
    });

  test.each<{ what: string; vanishing: Machine; isDeleting?: boolean }>([
    { what: 'vanishes', vanishing: again() },
    { what: 'vanishes before it has recorded its VM', vanishing: again((m) => void (m.spec.providerID = '')) },
    { what: 'vanishes while its VM is being deleted', vanishing: again(), isDeleting: true },
  ])('and $what, loses neither VM nor Node as one that we deleted', ({ vanishing, isDeleting = false }) => {
    const { tell, removed, gone } = watching(true);
    gone.add(MADE_FOR);
    if (isDeleting) removed.deletingVM('again');
    tell(undefined, vanishing);

    tell(vanishing, undefined);

    const left = node((n) => {
      n.metadata.name = 'm-1';
      n.spec = { providerID: MADE_FOR.providerID };
    });
    expect([gone.has(MADE_FOR.providerID), gone.of(left)]).toEqual([false, undefined]);
  });

  test('and goes in order, is remembered as deleted', () => {
    const { tell, removed, gone } = watching(true);
    gone.add(MADE_FOR);
    removed.deletingVM('again');
    removed.deletedVM('again');

    tell(again(), undefined);

    expect(gone.has(MADE_FOR.providerID)).toBe(true);
  });
});

test('a process whose leadership is suspended, or over, warns of no Machine that vanishes, and remembers it', () => {
  const { tell, seen, removed } = watching(false);
  const gone = machine();

  tell(gone, undefined);

  expect(seen.warnings).toBe(0);
  expect(removed.missed).toEqual([gone]);
});

test.each([
  { before: 'Creating machine', after: 'code = [OutOfRange] message = [several VMs]', looks: 1 },
  { before: 'code = [OutOfRange] message = [two VMs]', after: 'code = [OutOfRange] message = [three VMs]', looks: 0 },
  { before: 'code = [OutOfRange] message = [two VMs]', after: 'Machine is running', looks: 0 },
])('a description that turns from $before into $after makes the loop look $looks times', ({ before, after, looks }) => {
  const { tell, seen } = watching(true);
  const says = (description: string): Machine => machine((m) => (m.status.lastOperation.description = description));

  tell(says(before), says(after));

  expect(seen.looks).toBe(looks);
});

test.each([
  { where: 'another namespace', namespace: 'other', isGone: false },
  { where: 'its namespace', namespace: 'default', isGone: true },
])(
  'the VM of a Machine that went in order, and that one in $where has too, is gone: $isGone',
  ({ namespace, isGone }) => {
    const copy = machine((m) => Object.assign(m.metadata, { namespace, uid: 'copy' }));
    const world = watching(true, [copy]);
    const old = machine();
    world.removed.deletingVM(old.metadata.uid);
    world.removed.deletedVM(old.metadata.uid);

    world.tell(old, undefined);

    expect(world.gone.has(old.spec.providerID ?? '')).toBe(isGone);
  },
);

test.each(['zone', 'target'] as const)(
  'a Machine that begins to be kept with many others has the next look made soon: %s',
  (kept) => {
    const { tell, seen, hastened } = watching(true);
    const saying = (kind?: ReplacementHoldKind): Machine =>
      machine((m) => {
        m.status.currentStatus.phase = 'Unknown';
        m.status.lastOperation = { type: 'HealthCheck', state: 'Processing', description: 'x' };
        if (kind !== undefined) m.status.lastOperation.errorCode = hold(kind).code;
      });
    const told = [saying(), saying('grace'), saying(kept), saying(kept), saying('pace')];

    for (const [i, current] of told.entries()) tell(told[i - 1], current);

    expect([hastened(), seen.looks]).toEqual([1, 0]);
  },
);

test.each<{ what: string; isDeleting?: boolean; finalizers?: string[]; others?: readonly Machine[]; soon: number }>([
  { what: 'its class is being deleted and has no other', soon: 1 },
  {
    what: 'its class has another',
    others: [machine((m) => void Object.assign(m.metadata, { name: 'm-2', uid: 'uid-2' }))],
    soon: 0,
  },
  { what: 'its class is not being deleted', isDeleting: false, soon: 0 },
  { what: 'its class is kept by others alone', finalizers: ['example.com/other'], soon: 0 },
])('a Machine that goes in order makes $soon looks soon when $what', (row) => {
  const { isDeleting = true, finalizers = [MACHINE_FINALIZER], others, soon } = row;
  const deletionTimestamp = isDeleting ? '2026-01-01T00:00:00Z' : undefined;
  const oneClass = machineClass((c) => void Object.assign(c.metadata, { deletionTimestamp, finalizers }));
  const { tell, seen, removed, hastened } = watching(true, others, oneClass);
  removed.deletingVM(machine().metadata.uid);
  removed.deletedVM(machine().metadata.uid);

  tell(machine(), undefined);

  expect([hastened(), seen.looks]).toEqual([soon, 0]);
});
