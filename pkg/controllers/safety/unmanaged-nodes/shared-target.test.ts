import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, node } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { MACHINE_NAME_LABEL, NOT_MANAGED_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { machines as machineResource } from '../../../kube/client/resource.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { MACHINE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { DeletedMachines } from '../deleted-machines.ts';
import { nodeKey, UnmanagedNodesController } from './controller.ts';
import { unmanagedNodeMetrics } from './metrics.ts';

const TIMEOUT_MS = 60_000;
const OURS = 'default';

interface Scene {
  readonly isJudge?: boolean;
  /** Its VM was deleted by this namespace. */
  readonly isLeft?: boolean;
  readonly isMarked?: boolean;
  readonly owners?: readonly Machine[];
}

/** Node m-1 in a target of several namespaces, as seen by one of them. */
function scene({ isJudge = true, isLeft = false, isMarked = false, owners = [] }: Scene) {
  const clock = new FakeClock();
  const reader = new MemoryClient();
  const targetClient = new MemoryClient();
  const shown = node((n) => {
    n.metadata.labels = { [MACHINE_NAME_LABEL]: 'm-1' };
    if (isMarked) n.metadata.annotations = { [NOT_MANAGED_ANNOTATION]: '1' };
  });
  const nodes = new MemoryInformer([shown]);
  const target = { cluster: 'target', nodes, reader: targetClient, writer: targetClient } as unknown as Target;
  const gone = new DeletedMachines();
  if (isLeft) gone.add({ name: 'm-1', nodeName: 'm-1', providerID: 'sim:///m-1' });
  const controller = new UnmanagedNodesController({
    nodesInTarget: { areAllMissing: () => false },
    targets: { all: () => [target], of: () => target },
    machines: new MemoryInformer<Machine>([...owners], MACHINE_INDEXES),
    gone,
    reader,
    namespace: OURS,
    shared: { isJudgeOf: () => isJudge },
    metrics: unmanagedNodeMetrics(new Registry()),
    clock,
    log: silentLogger,
    creationTimeoutMs: TIMEOUT_MS,
  });
  const pass = (): Promise<unknown> => controller.reconcile(nodeKey(target, 'm-1'), new AbortController().signal);
  /** Until any Node without Machine would have been marked. */
  const passes = async (): Promise<void> => {
    await pass();
    clock.advance(TIMEOUT_MS);
    await pass();
  };
  return { reader, targetClient, passes };
}

const of = (namespace: string): Machine =>
  machine((m) => Object.assign(m.metadata, { namespace, uid: `${namespace}-m-1` }));

describe('in a target cluster of several namespaces', () => {
  test.each([
    { what: 'a Node of nobody is marked by one of them', is: {}, verbs: ['patch'] },
    { what: 'a Node of nobody is left alone by the others', is: { isJudge: false }, verbs: [] },
    { what: 'a Node of another namespace is left alone', is: { owners: [of('other')] }, verbs: [] },
    {
      what: 'a marked Node of another namespace is left alone',
      is: { owners: [of('other')], isMarked: true },
      verbs: [],
    },
    {
      what: 'a marked Node of its own is unmarked',
      is: { owners: [of(OURS)], isMarked: true, isJudge: false },
      verbs: ['patch'],
    },
    {
      what: 'what is left of its machine goes, whoever decides about others',
      is: { isLeft: true, isJudge: false },
      verbs: ['delete'],
    },
    {
      what: 'what is left of its machine stays when another namespace has it',
      is: { isLeft: true, owners: [of('other')] },
      verbs: [],
    },
  ])('$what', async ({ is, verbs }) => {
    const { targetClient, passes } = scene(is);

    await passes();

    expect([...new Set(targetClient.writes.map(({ verb }) => verb))]).toEqual(verbs);
  });

  test('what is left of its machine stays when a Machine of another namespace has come that no cache shows yet', async () => {
    const { reader, targetClient, passes } = scene({ isLeft: true });
    reader.put(machineResource, of('other'));

    await passes();

    expect(targetClient.writes).toEqual([]);
  });
});
