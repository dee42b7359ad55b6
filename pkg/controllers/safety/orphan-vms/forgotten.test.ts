import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { ForgottenMachines } from './forgotten.ts';

function named(name: string, className: string, providerID: string | undefined): Machine {
  return machine((m) => {
    m.metadata.name = name;
    m.spec = { class: { kind: 'MachineClass', name: className }, ...(providerID === undefined ? {} : { providerID }) };
  });
}

function forgetting(machines: readonly Machine[]): { forgotten: ForgottenMachines; told: string[] } {
  const told: string[] = [];
  const classes = new MemoryInformer(
    ['class-1', 'class-2'].map((name) => machineClass((one) => void (one.metadata.name = name))),
    {},
  );
  const recorder = { event: ({ message }: { message: string }) => void told.push(message) };
  const forgotten = new ForgottenMachines({ classes, recorder, log: silentLogger });
  forgotten.add(machines);
  return { forgotten, told };
}

function vm(machineName: string, providerID: string): Parameters<ForgottenMachines['has']>[0] {
  return { machineName, providerID, machineUID: undefined };
}

test('each class is told, once, of its Machines that are forgotten and whose VMs exist, and how these can be deleted', () => {
  const many = Array.from({ length: 22 }, (_, i) => named(`m-${String(i).padStart(2, '0')}`, 'class-1', `sim:///${i}`));

  const { told } = forgetting([
    ...many,
    named('of-gone-class', 'gone', 'sim:///gone'),
    named('without-vm', 'class-2', undefined),
  ]);

  expect(told).toEqual([
    expect.stringMatching(
      / does not contain 22 Machines\. .* are kept\. .* set the UID in the tags of the VM .* annotate --overwrite machineclass .* The Machines: m-00, .*, m-19 and 2 more$/,
    ),
  ]);
});

describe('the VM of a Machine that is forgotten', () => {
  const { forgotten } = forgetting([named('m-1', 'class-1', 'sim:///1'), named('in-creation', 'class-1', undefined)]);

  test.each([
    { what: 'its provider id', one: vm('named-otherwise', 'sim:///1'), is: true },
    { what: 'its name', one: vm('m-1', 'other:///1'), is: true },
    { what: 'its name while it was being created', one: vm('in-creation', 'sim:///2'), is: true },
    { what: 'nothing of it', one: vm('m-2', 'sim:///3'), is: false },
    { what: 'no provider id, as little as one in creation had', one: vm('m-2', ''), is: false },
  ])('is known by $what: $is', ({ one, is }) => {
    expect(forgotten.has(one)).toBe(is);
  });

  test('is nothing special any more once the Machine was made again', () => {
    const again = forgetting([named('m-1', 'class-1', 'sim:///1'), named('m-2', 'class-1', 'sim:///2')]).forgotten;

    again.exist([named('m-1', 'class-1', 'sim:///1')]);

    expect([again.has(vm('m-1', 'sim:///1')), again.has(vm('m-2', 'sim:///2'))]).toEqual([false, true]);
  });
});
