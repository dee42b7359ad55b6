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

/** A controller, and what it has written to the target. */
function start(areAllMissing: () => boolean) {
  const clock = new FakeClock();
  const machines = new Store<Machine>(MACHINE_INDEXES);
  const nodes = new Store<Node>(NODE_INDEXES);
  const written: string[] = [];
  const writer = {
    patch: (_intent: unknown, _resource: unknown, { name }: { name: string }) => {
      written.push(name);
      return Promise.resolve();
    },
  };
  const target = { cluster: 'target', nodes, writer } as unknown as Target;
  const controller = new UnmanagedNodesController({
    targets: { all: () => [target], of: () => target },
    machines,
    nodesInTarget: { areAllMissing },
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
  const look = (name: string) => controller.reconcile(nodeKey(target, name), new AbortController().signal);
  return { clock, machines, nodes, written, look };
}

test('Nodes without a Machine are not marked while none of the Nodes of the Machines is in the target: they may be those of another cluster', async () => {
  let areAllMissing = true;
  const { clock, nodes, written, look } = start(() => areAllMissing);
  const { name } = node().metadata;
  nodes.put(node());
  await look(name);
  clock.advance(TIMEOUT_MS);

  expect(await look(name)).toMatchObject({ kind: 'requeue', afterMs: TIMEOUT_MS });
  expect(written).toEqual([]);

  areAllMissing = false;
  expect(await look(name)).toMatchObject({ kind: 'stop' });
  expect(written).toEqual([name]);
});

test('a Node of any age has the whole creation timeout from the moment on in which its Machine was last seen', async () => {
  const { clock, machines, nodes, written, look: lookAt } = start(() => false);
  const old = node((n) => void (n.metadata.creationTimestamp = '2020-01-01T00:00:00Z'));
  const owner = machine((m) => void (m.metadata.labels = { node: old.metadata.name }));
  nodes.put(old);
  machines.put(owner);
  const look = () => lookAt(old.metadata.name);

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
  expect(written).toEqual([]);
});
