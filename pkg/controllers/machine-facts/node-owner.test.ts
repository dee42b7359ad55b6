import { describe, expect, test } from '@jest/globals';

import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import { indexesByNamespace, NamespaceViews } from '../../kube/cache/namespace-views.ts';
import { Store } from '../../kube/cache/store.ts';
import { machine, node } from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { MACHINE_INDEXES } from '../../operator/indexes/machine-indexes.ts';
import { belongsTo, isRemovedWith, nodesRemovedWith, ownNodeOf } from './node-owner.ts';

const ACROSS = new Set(Object.keys(MACHINE_INDEXES));
const OLD = '2025-12-31T00:00:00Z';
const YOUNG = '2026-01-02T00:00:00Z';

interface Recorded {
  readonly name: string;
  readonly providerID?: string;
  readonly label?: string;
  readonly created?: string;
}

function recorded({ name, providerID = '', label = 'n-1', created = '2026-01-01T00:00:00Z' }: Recorded): Machine {
  return machine((m) => {
    m.metadata.name = name;
    m.metadata.creationTimestamp = created;
    m.metadata.labels = { node: label };
    m.spec = { providerID };
  });
}

function known(...machines: Machine[]): Store<Machine> {
  const store = new Store<Machine>(MACHINE_INDEXES);
  for (const one of machines) store.put(one);
  return store;
}

describe('a Node n-1 that machine m-1 names', () => {
  test.each([
    { what: 'shows its name', shows: 'm-1', onNode: 'vm-9', own: 'vm-1', others: [], is: true },
    {
      what: 'shows its name, and has an id that another recorded',
      shows: 'm-1',
      onNode: 'vm-2',
      own: 'vm-1',
      others: [{ name: 'm-2', providerID: 'vm-2' }],
      is: true,
    },
    {
      what: 'shows the name of another living machine',
      shows: 'm-2',
      onNode: 'vm-1',
      own: 'vm-1',
      others: [{ name: 'm-2' }],
      is: false,
    },
    {
      what: 'shows the name of a machine that is gone',
      shows: 'm-2',
      onNode: 'vm-1',
      own: 'vm-1',
      others: [],
      is: true,
    },
    {
      what: 'shows the name of a machine that is gone, and its id in another form',
      shows: 'm-2',
      onNode: 'aws:///eu-west-1a/i-1',
      own: 'aws:///eu-west-1/i-1',
      others: [],
      is: true,
    },
    {
      what: 'shows the name of a machine that is gone, and is another VM',
      shows: 'm-2',
      onNode: 'vm-2',
      own: 'vm-1',
      others: [],
      is: false,
    },
    {
      what: 'shows the name of a machine that is gone, and no id',
      shows: 'm-2',
      onNode: '',
      own: 'vm-1',
      others: [],
      is: false,
    },
    { what: 'shows no name, and is its VM', shows: '', onNode: 'vm-1', own: 'vm-1', others: [], is: true },
    {
      what: 'shows no name, and its id in another form, which nobody else has',
      shows: '',
      onNode: 'aws:///eu-west-1a/i-1',
      own: 'aws:///eu-west-1/i-1',
      others: [],
      is: true,
    },
    {
      what: 'shows no name, and an id that has nothing in common with that of its machine, and nobody else has',
      shows: '',
      onNode: 'cloud://instances/9',
      own: 'vm-1',
      others: [],
      is: true,
    },
    {
      what: 'shows no name, and is the VM of another machine that names it',
      shows: '',
      onNode: 'aws:///eu-west-1a/i-2',
      own: 'aws:///eu-west-1/i-1',
      others: [{ name: 'm-2', providerID: 'aws:///eu-west-1/i-2', created: YOUNG }],
      is: false,
    },
    {
      what: 'shows no name, and its id in another form, and another machine names it that is another VM',
      shows: '',
      onNode: 'aws:///eu-west-1a/i-1',
      own: 'aws:///eu-west-1/i-1',
      others: [{ name: 'm-0', providerID: 'aws:///eu-west-1/i-2', created: OLD }],
      is: true,
    },
    {
      what: 'shows no name, and is the VM of another machine that has no such Node yet',
      shows: '',
      onNode: 'vm-2',
      own: 'vm-1',
      others: [{ name: 'm-2', label: '', providerID: 'vm-2', created: YOUNG }],
      is: false,
    },
    {
      what: 'shows no name, and an id that neither it nor an older machine has that names it',
      shows: '',
      onNode: 'cloud://instances/9',
      own: 'vm-1',
      others: [{ name: 'm-0', providerID: 'vm-0', created: OLD }],
      is: false,
    },
    {
      what: 'shows no name, and an id that neither it nor a younger machine has that names it',
      shows: '',
      onNode: 'cloud://instances/9',
      own: 'vm-1',
      others: [{ name: 'm-2', providerID: 'vm-2', created: YOUNG }],
      is: true,
    },
    { what: 'shows neither name nor id', shows: '', onNode: '', own: 'vm-1', others: [], is: true },
    {
      what: 'shows no name, and an older machine has it too',
      shows: '',
      onNode: 'vm-1',
      own: 'vm-1',
      others: [{ name: 'm-0', providerID: 'vm-1', created: OLD }],
      is: false,
    },
    {
      what: 'shows no name, and a younger machine has it too',
      shows: '',
      onNode: 'vm-1',
      own: 'vm-1',
      others: [{ name: 'm-2', providerID: 'vm-1', created: YOUNG }],
      is: true,
    },
    {
      what: 'shows no name, and its namesake has it too',
      shows: '',
      onNode: 'vm-1',
      own: 'vm-1',
      others: [{ name: 'n-1', providerID: 'vm-1', created: YOUNG }],
      is: false,
    },
    {
      what: 'shows no name, and an older machine names it that is another VM',
      shows: '',
      onNode: 'vm-1',
      own: 'vm-1',
      others: [{ name: 'm-0', providerID: 'vm-0', created: OLD }],
      is: true,
    },
    {
      what: 'shows no name, and an older machine has its id under another name',
      shows: '',
      onNode: 'vm-1',
      own: 'vm-1',
      others: [{ name: 'm-0', label: 'n-0', providerID: 'vm-1', created: OLD }],
      is: false,
    },
  ])('and that $what: $is', ({ shows, onNode, own, others, is }) => {
    const mine = recorded({ name: 'm-1', providerID: own });
    const it = node((n) => {
      n.metadata.name = 'n-1';
      if (shows !== '') n.metadata.labels['node.gardener.cloud/machine-name'] = shows;
      n.spec = { providerID: onNode };
    });

    expect(belongsTo(it, mine, known(mine, ...others.map(recorded)))).toBe(is);
  });
});

describe('a Node that machine m-1 names, in a target that namespaces share', () => {
  const [vm, other] = ['aws:///eu-west-1/i-1', 'aws:///eu-west-1/i-2'];
  test.each([
    { what: 'is its VM', onNode: vm, is: true },
    { what: 'is its VM, with an id in another form', onNode: 'aws:///eu-west-1a/i-1', is: true },
    { what: 'is another VM', onNode: other, is: false },
    { what: 'shows an id that has nothing in common with its own', onNode: 'kubemark://x', is: false },
    { what: 'shows no id', onNode: '', is: false },
    { what: 'shows an id, while it has none itself', onNode: vm, own: '', is: false },
    { what: 'shows its name and no id', onNode: '', shows: 'm-1', is: true },
    { what: 'shows the name of a machine that is gone', onNode: '', shows: 'm-2', is: false },
  ])('and that $what: $is', ({ onNode, own = vm, shows = '', is }) => {
    const { mine, it } = pairOf({ what: '', label: 'n-1', own, shows, onNode });
    const shared = new NamespaceViews(
      new MemoryInformer([mine], indexesByNamespace(MACHINE_INDEXES, ACROSS)),
      () => undefined,
      ACROSS,
    ).of('default');

    expect(belongsTo(it, mine, shared)).toBe(is);
    expect(isRemovedWith(it, mine, shared)).toBe(is);
    expect(nodesRemovedWith([it], mine, shared)).toEqual(is ? [it] : []);
  });
});

/** Of machine m-1 and a Node. */
interface Pair {
  readonly what: string;
  readonly label?: string;
  readonly own?: string;
  readonly phase?: 'Pending' | 'CrashLoopBackOff' | 'Terminating';
  readonly joined?: boolean;
  readonly shows?: string;
  readonly onNode?: string;
  readonly nodeCreated?: string;
}

function pairOf(pair: Pair): { readonly mine: Machine; readonly it: Node } {
  const { label = '', own = '', phase, joined = false, shows = 'm-1', onNode = '', nodeCreated = YOUNG } = pair;
  const mine = machine((m) => {
    m.metadata.name = 'm-1';
    m.metadata.creationTimestamp = '2026-01-01T00:00:00Z';
    m.metadata.labels = label === '' ? {} : { node: label };
    m.spec = { providerID: own };
    m.status.conditions = joined ? [{ type: 'Ready', status: 'True' }] : [];
    m.status.currentStatus = phase === undefined ? {} : { phase };
  });
  const it = node((n) => {
    Object.assign(n.metadata, { name: 'n-1', creationTimestamp: nodeCreated });
    if (shows !== '') n.metadata.labels[MACHINE_NAME_LABEL] = shows;
    n.spec = { providerID: onNode };
  });
  return { mine, it };
}

describe('a Node n-1 goes with machine m-1', () => {
  const [vm, other] = ['sim:///zone/1', 'sim:///zone/2'];
  test.each<Pair & { readonly goes: boolean; readonly alone?: boolean }>([
    { what: 'it shows its name only', goes: false },
    { what: 'it shows its name, and the machine failed to get a VM', phase: 'CrashLoopBackOff', goes: false },
    { what: 'it has its ID, which nobody has confirmed', own: vm, onNode: vm, goes: false },
    { what: 'it has its ID, which is to be confirmed', own: vm, onNode: vm, phase: 'CrashLoopBackOff', goes: false },
    { what: 'it has the ID of its VM', own: vm, onNode: vm, label: 'other', goes: true },
    { what: 'it has the ID of its VM, and the label is gone', own: vm, onNode: vm, joined: true, goes: true },
    { what: 'it has the ID of its VM, and has not joined', own: vm, onNode: vm, phase: 'Pending', goes: true },
    { what: 'it is named', own: vm, label: 'n-1', goes: true },
    { what: 'it is named, with an ID of another form', own: vm, label: 'n-1', onNode: 'kubemark://x', goes: true },
    { what: 'it is named, and another VM that joined later', own: vm, label: 'n-1', onNode: other, goes: true },
    {
      what: 'it is named, and an earlier VM',
      own: vm,
      label: 'n-1',
      onNode: other,
      nodeCreated: OLD,
      goes: false,
    },
    {
      what: 'it is named, and was there before, with an ID of another form',
      own: vm,
      label: 'n-1',
      onNode: 'kubemark://x',
      nodeCreated: OLD,
      goes: true,
    },
    {
      what: 'it is named, shows no name, and another VM',
      own: vm,
      label: 'n-1',
      onNode: other,
      shows: '',
      goes: false,
    },
    { what: 'it shows the name of a machine whose label names another', own: vm, label: 'other', goes: false },
    {
      what: 'it shows the name of a machine that had a Node, which is gone',
      own: vm,
      label: 'other',
      joined: true,
      goes: false,
      alone: true,
    },
    {
      what: 'it shows the name of a machine that had a Node, and the ID of another VM',
      own: vm,
      label: 'other',
      onNode: other,
      joined: true,
      goes: false,
    },
  ])('if $what: $goes', ({ goes, alone = goes, ...pair }) => {
    const { mine, it } = pairOf(pair);

    expect(isRemovedWith(it, mine, known(mine))).toBe(goes);
    expect(nodesRemovedWith([it], mine, known(mine))).toEqual(alone ? [it] : []);
  });

  test('if it shows its name, and the ID that the machine has recorded is another one, which another machine has too', () => {
    const { mine, it } = pairOf({
      what: '',
      label: 'other',
      own: 'sim:///zone/2',
      onNode: 'sim:///zone/1',
      joined: true,
    });
    const twin = machine((m) => {
      Object.assign(m.metadata, { name: 'm-2', uid: 'uid-2', labels: { node: 'other' } });
      m.spec.providerID = 'sim:///zone/2';
    });

    expect(nodesRemovedWith([it], mine, known(mine))).toEqual([]);
    expect(nodesRemovedWith([it], mine, known(mine, twin))).toEqual([it]);
  });

  test('not if another one does, by what the machine has recorded', () => {
    const { mine, it } = pairOf({ what: '', label: 'own', joined: true });
    const own = node((n) => void (n.metadata.name = 'own'));

    expect(nodesRemovedWith([it, own], mine, known(mine))).toEqual([own]);
  });
});

describe('the own Node of machine m-1', () => {
  const of = (n: { name: string; shows?: string; id?: string; created?: string }): Node =>
    node((one) => {
      Object.assign(one.metadata, { name: n.name, creationTimestamp: n.created ?? YOUNG });
      if (n.shows !== undefined) one.metadata.labels[MACHINE_NAME_LABEL] = n.shows;
      one.spec.providerID = n.id ?? '';
    });

  test.each([
    { what: 'there is none', found: [], own: undefined },
    { what: 'one shows its name', found: [of({ name: 'a', shows: 'm-1', id: 'vm-1' })], own: 'a' },
    {
      what: 'one shows its name, and another id',
      found: [of({ name: 'a', shows: 'm-1', id: 'kubemark://x' })],
      own: 'a',
    },
    {
      what: 'one shows its name and another id, and was there before it',
      found: [of({ name: 'a', shows: 'm-1', id: 'vm-0', created: OLD })],
      own: undefined,
    },
    {
      what: 'one was there before it, which shows its name and no id',
      found: [of({ name: 'a', shows: 'm-1', created: OLD })],
      own: 'a',
    },
    {
      what: 'one of two is an earlier machine of its name',
      found: [of({ name: 'a', shows: 'm-1', id: 'vm-0', created: OLD }), of({ name: 'b', shows: 'm-1', id: 'x' })],
      own: 'b',
    },
    {
      what: 'two show its name',
      found: [of({ name: 'a', shows: 'm-1' }), of({ name: 'b', shows: 'm-1' })],
      own: undefined,
    },
    { what: 'one has its id, and shows no name', found: [of({ name: 'a', id: 'vm-1' })], own: 'a' },
    { what: 'one has no id, and shows no name', found: [of({ name: 'a' })], own: undefined },
    {
      what: 'one shows its name, and another has its id',
      found: [of({ name: 'a', id: 'vm-1' }), of({ name: 'b', shows: 'm-1' })],
      own: 'b',
    },
  ])('where $what', ({ found, own }) => {
    const asked = recorded({ name: 'm-1', providerID: 'vm-1' });

    expect(ownNodeOf(asked, { ofMachine: () => found })?.metadata.name).toBe(own);
  });
});
