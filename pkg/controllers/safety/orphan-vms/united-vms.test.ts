import { expect, test } from '@jest/globals';

import { machine, machineClass, machineSet } from '../../../../test/builders.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Capabilities, ListedMachine } from '../../../driver/driver.ts';
import { identify } from '../../vms/ownership.ts';
import type { ClassList } from './survey.ts';
import { unite } from './united-vms.ts';

const idOf = (name: string): string => `sim:///${name}`;
const vmOf = (name: string, uid?: string): ListedMachine => ({
  providerID: idOf(name),
  machineName: name,
  machineUID: uid,
});
const ofClass = (name: string, className: string): Machine =>
  machine((m) => {
    Object.assign(m.metadata, { name, uid: `uid-of-${name}` });
    m.spec = { class: { kind: 'MachineClass', name: className }, providerID: idOf(name) };
  });

function listOf(name: string, vms: readonly ListedMachine[], scope: Capabilities['listScope'] = 'cluster'): ClassList {
  const oneClass = machineClass((c) => void (c.metadata.name = name));
  return {
    key: `default/${name}`,
    machineClass: oneClass,
    driver: new FakeDriver(),
    secretData: {},
    scope,
    vms,
    foreign: [],
  };
}

const MACHINES = [ofClass('big-1-x', 'big'), ofClass('small-1-x', 'small'), ofClass('shared-x', 'big')];

/** A VM in the lists of both classes, unless it says otherwise: with whom it counts, which class releases it, and by which it is reached. */
test.each<{
  what: string;
  vm: ListedMachine;
  scopes?: Partial<Record<'big' | 'small', Capabilities['listScope']>>;
  more?: readonly Machine[];
  /** Classes of sets that exist. */
  sets?: Readonly<Record<string, string>>;
  /** Classes that exist; those that are listed, unless it says otherwise. */
  classes?: readonly string[];
  group: string;
  by: string;
}>([
  { what: 'of a Machine', vm: vmOf('small-1-x'), group: 'default/small', by: 'default/small' },
  {
    what: 'that carries the UID of a Machine',
    vm: vmOf('other', 'uid-of-small-1-x'),
    group: 'default/small',
    by: 'default/small',
  },
  { what: 'of a set that has a Machine', vm: vmOf('small-1-y'), group: 'default/small', by: 'default/small' },
  {
    what: 'of a set that has none, but is there,',
    vm: vmOf('small-2-y'),
    sets: { 'small-2': 'small' },
    group: 'default/small',
    by: 'default/small',
  },
  {
    what: 'of a set that has Machines of another class than it names by now',
    vm: vmOf('small-1-y'),
    sets: { 'small-1': 'big' },
    group: 'default/small',
    by: 'default/small',
  },
  {
    what: 'of a set that has none, and is of no class,',
    vm: vmOf('small-2-y'),
    sets: { 'small-2': '' },
    group: 'default/big, of unknown class',
    by: 'default/big',
  },
  {
    what: 'of a set that has none',
    vm: vmOf('small-2-y'),
    group: 'default/big, of unknown class',
    by: 'default/big',
  },
  {
    what: 'whose name has no set, as another one',
    vm: vmOf('alone'),
    more: [ofClass('lonely', 'small')],
    group: 'default/big, of unknown class',
    by: 'default/big',
  },
  {
    what: 'of a set whose Machines are of several classes',
    vm: vmOf('shared-y'),
    more: [ofClass('shared-z', 'small')],
    group: 'default/big, of unknown class',
    by: 'default/big',
  },
  {
    what: 'of a set whose class cannot be listed',
    vm: vmOf('small-1-y'),
    scopes: { big: 'cluster' },
    classes: ['small'],
    group: 'default/small',
    by: 'default/big',
  },
  {
    what: 'of a set whose class is gone',
    vm: vmOf('small-1-y'),
    scopes: { big: 'cluster' },
    group: 'default/big, of unknown class',
    by: 'default/big',
  },
  {
    what: 'that a list of its class shows, although its name is one of another',
    vm: vmOf('small-1-y'),
    scopes: { big: 'class' },
    group: 'default/big',
    by: 'default/big',
  },
  {
    what: 'that the lists of two classes show, although each says that it is of its class alone,',
    vm: vmOf('small-1-y'),
    scopes: { small: 'class', big: 'class' },
    group: 'default/small',
    by: 'default/small',
  },
])(
  'a VM $what counts with $group',
  ({ vm, scopes = { small: 'cluster', big: 'cluster' }, more = [], group, by, ...row }) => {
    const lists = Object.entries(scopes).map(([name, scope]) => listOf(name, [vm], scope));

    const { classes = Object.keys(scopes) } = row;
    const known = new MemoryInformer(classes.map((name) => machineClass((c) => void (c.metadata.name = name))));
    const existing = Object.entries(row.sets ?? {}).map(([name, className]) =>
      machineSet((s) => {
        s.metadata.name = name;
        s.spec.template.spec = { class: { kind: 'MachineClass', name: className } };
      }),
    );
    const united = unite({ lists }, identify([...MACHINES, ...more]), { classes: known, sets: existing }).get(
      vm.providerID,
    );

    expect([united?.group, united?.access.key, united?.shownBy.length]).toEqual([group, by, lists.length]);
    expect(united?.releasedBy.metadata.name).toBe(group.replace(/^default\/|, of unknown class$/gu, ''));
  },
);
