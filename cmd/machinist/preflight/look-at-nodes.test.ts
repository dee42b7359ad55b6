import { expect, test } from '@jest/globals';

import { machine, node } from '../../../test/builders.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { ApiError } from '../../../pkg/kube/client/errors.ts';
import { lookAtNodes } from './look-at-nodes.ts';

const READY = { type: 'Ready', status: 'True' };

function machineNamed(name: string, change: (m: ReturnType<typeof machine>) => void = () => undefined): Machine {
  return machine((m) => {
    Object.assign(m.metadata, { name, labels: { node: name } });
    m.spec.providerID = `sim:///${name}`;
    m.status.conditions = [READY];
    change(m);
  });
}

function several(count: number): readonly Machine[] {
  return Array.from({ length: count }, (_, i) => machineNamed(`m-${i}`));
}

/** What is found of these, where the target has Nodes of these names, or refuses to say so. */
async function found(machines: readonly Machine[], names: readonly string[], refused?: ApiError): Promise<string[]> {
  const list = (() => Promise.resolve({ items: machines })) as never;
  const get = ((_resource: unknown, { name }: { name: string }) => {
    if (refused !== undefined) return Promise.reject(refused);
    if (!names.includes(name)) return Promise.reject(new ApiError(404, 'NotFound', 'no such Node'));
    return Promise.resolve(
      node((n) => {
        Object.assign(n.metadata, { name, labels: {} });
        n.spec.providerID = `sim:///${name}`;
      }),
    );
  }) as never;
  return (await lookAtNodes({ list }, { get }, 'ns')).map(({ status, detail }) => `${status} ${detail}`);
}

const NONE = (count: number): string =>
  `fail target: none of the Nodes of the ${count} Machines of namespace ns is in this cluster; they would become Unknown, and would not be drained before their deletion`;

test.each([
  { what: 'no Machines', machines: [], names: [], want: [] },
  { what: 'one Machine, whose Node may be lost', machines: several(1), names: [], want: [] },
  {
    what: 'Machines without a Node yet',
    machines: several(3).map((one) => ({ ...one, status: {} })),
    names: [],
    want: [],
  },
  { what: 'two Machines without their Nodes', machines: several(2), names: ['other'], want: [NONE(2)] },
  { what: 'many Machines, the last of which has its Node', machines: several(25), names: ['m-24'], want: [] },
  { what: 'many Machines without their Nodes', machines: several(25), names: [], want: [NONE(25)] },
  {
    what: 'two Machines, one of which is being deleted',
    machines: [
      machineNamed('m-0'),
      machineNamed('m-1', (m) => (m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z')),
    ],
    names: [],
    want: [],
  },
])(
  'a target is the wrong one if the Nodes of several Machines are not there: $what',
  async ({ machines, names, want }) => {
    expect(await found(machines as readonly Machine[], names)).toEqual(want);
  },
);

test('nothing is said of a target whose Nodes may not be read', async () => {
  expect(await found(several(2), [], new ApiError(403, 'Forbidden', 'nodes is forbidden'))).toEqual([]);
});
