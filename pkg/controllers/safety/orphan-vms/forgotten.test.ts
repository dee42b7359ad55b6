import { expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { silentLogger } from '../../../log/logger.ts';
import { tellOfForgotten } from './forgotten.ts';

function named(name: string, className: string, providerID: string | undefined): Machine {
  return machine((m) => {
    m.metadata.name = name;
    m.spec = { class: { kind: 'MachineClass', name: className }, ...(providerID === undefined ? {} : { providerID }) };
  });
}

test('tells each class, once, of its Machines that are forgotten and whose VMs exist', () => {
  const told: string[] = [];
  const classes = {
    get: (key: string) => (key.endsWith('/gone') ? undefined : machineClass()),
    list: () => [],
    byIndex: () => [],
  };
  const recorder = { event: ({ message }: { message: string }) => void told.push(message) };
  const many = Array.from({ length: 22 }, (_, i) => named(`m-${String(i).padStart(2, '0')}`, 'class-1', `sim:///${i}`));

  tellOfForgotten({ classes, recorder, log: silentLogger }, [
    ...many,
    named('of-gone-class', 'gone', 'sim:///gone'),
    named('without-vm', 'class-2', undefined),
  ]);

  expect(told).toEqual([
    expect.stringMatching(/ does not have 22 Machines: m-00, .*, m-19 and 2 more\. Their VMs have no Machine now /),
  ]);
});
