import { expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Reader } from '../../../pkg/kube/client/client.ts';
import { ApiError } from '../../../pkg/kube/client/errors.ts';
import { machines } from '../../../pkg/kube/client/resource.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { describe, type Description } from './description.ts';
import type { DescribedKind } from '../../../pkg/fleet/describe/described-kind.ts';
import { printDescription } from './print-description.ts';
import { renderDescription } from './render.ts';

const KIND: DescribedKind<Machine, Description> = {
  resource: machines,
  describe: async (_reader, object, told, nowMs) => describe(object, told, nowMs()),
  render: renderDescription,
};
const MACHINE: Machine = machine();

/** A cluster with one Machine, in which listing Events ends so. */
function clusterWhere(list: () => Promise<never>): CommandCluster {
  const reader = { get: async () => MACHINE, list } as unknown as Reader;
  return { reader, now: () => Date.parse('2026-01-01T00:00:00Z') } as unknown as CommandCluster;
}

const REF = { namespace: 'default', name: MACHINE.metadata.name };

test('an object whose Events may not be read is described without them, and says so', async () => {
  const forbidden = new ApiError(403, 'Forbidden', 'events is forbidden');

  const { text, description } = await printDescription(
    KIND,
    REF,
    clusterWhere(() => Promise.reject(forbidden)),
  );

  expect(text).toMatch(/^Phase: +Running$/m);
  expect(text.split('\n').at(-1)).toBe('Events: cannot be read: events is forbidden');
  expect(text.match(/^Events:/gm)).toHaveLength(1);
  expect(description).toMatchObject({ phase: 'Running', events: [], eventsRefused: 'events is forbidden' });
});

test('any other error is one of the command', async () => {
  const down = new ApiError(0, 'Unreachable', 'down');

  await expect(
    printDescription(
      KIND,
      REF,
      clusterWhere(() => Promise.reject(down)),
    ),
  ).rejects.toThrow('down');
});
