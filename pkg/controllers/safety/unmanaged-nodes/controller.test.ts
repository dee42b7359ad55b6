import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, node } from '../../../../test/builders.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { Store } from '../../../kube/cache/store.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { unmanagedNodeMetrics } from './metrics.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { DeletedMachines } from '../deleted-machines.ts';
import { nodeKey, UnmanagedNodesController } from './controller.ts';

const TIMEOUT_MS = 1_200_000;

test('a Node of any age has the whole creation timeout from the moment on in which its Machine was last seen', async () => {
  const clock = new FakeClock();
  const machines = new Store<Machine>(MACHINE_INDEXES);
  const nodes = new Store<Node>(NODE_INDEXES);
  const old = node((n) => void (n.metadata.creationTimestamp = '2020-01-01T00:00:00Z'));
  const owner = machine((m) => void (m.metadata.labels = { node: old.metadata.name }));
  nodes.put(old);
  machines.put(owner);
  // What is written is of no concern here: nothing may be.
  const target = { cluster: 'target', nodes } as unknown as Target;
  const controller = new UnmanagedNodesController({
    targets: { all: () => [target], of: () => target },
    machines,
    gone: new DeletedMachines(),
    reader: {
      get: () => Promise.reject(new Error('not asked for')),
      list: () => Promise.reject(new Error('nor this')),
    },
    namespace: 'default',
    metrics: unmanagedNodeMetrics(new Registry()),
    clock,
    log: silentLogger,
    creationTimeoutMs: TIMEOUT_MS,
  });
  const look = () => controller.reconcile(nodeKey(target, old.metadata.name), new AbortController().signal);

  expect(await look()).toMatchObject({ kind: 'stop' });
  machines.remove(`${owner.metadata.namespace}/${owner.metadata.name}`);
  clock.advance(10 * TIMEOUT_MS);
  expect(await look()).toMatchObject({ afterMs: TIMEOUT_MS });
  clock.advance(TIMEOUT_MS - 1_000);
  expect(await look()).toMatchObject({ afterMs: 1_000 });

  machines.put(owner);
  expect(await look()).toMatchObject({ kind: 'stop' });
  machines.remove(`${owner.metadata.namespace}/${owner.metadata.name}`);
  expect(await look()).toMatchObject({ afterMs: TIMEOUT_MS });
});
