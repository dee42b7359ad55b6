import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, node } from '../../../../test/builders.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { MAINTENANCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machines as machineResource } from '../../../kube/client/resource.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { unmanagedNodeMetrics } from './metrics.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { MACHINE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { DeletedMachines } from '../deleted-machines.ts';
import { nodeKey, UnmanagedNodesController } from './controller.ts';

const TIMEOUT_MS = 60_000;
const signal = new AbortController().signal;

/** A Node of no Machine; with `isGone` of one whose VM was deleted. */
function scene(isGone: boolean) {
  const clock = new FakeClock();
  const reader = new MemoryClient();
  const targetClient = new MemoryClient();
  const nodes = new MemoryInformer([node()]);
  const target = { cluster: 'target', nodes, reader: targetClient, writer: targetClient } as unknown as Target;
  const gone = new DeletedMachines();
  if (isGone) gone.add({ name: 'm-1', nodeName: 'm-1', providerID: 'sim:///m-1' });
  const controller = new UnmanagedNodesController({
    nodesInTarget: { areAllMissing: () => false },
    targets: { all: () => [target], of: () => target },
    machines: new MemoryInformer<Machine>([], MACHINE_INDEXES),
    gone,
    reader,
    namespace: 'default',
    metrics: unmanagedNodeMetrics(new Registry()),
    clock,
    log: silentLogger,
    creationTimeoutMs: TIMEOUT_MS,
  });
  const pass = (): Promise<unknown> => controller.reconcile(nodeKey(target, 'm-1'), signal);
  return { clock, reader, targetClient, nodes, pass };
}

describe('the Node of a machine that is gone', () => {
  test('goes, after a live look for its Machine', async () => {
    const { reader, targetClient, pass } = scene(true);

    await pass();

    expect(reader.reads).toEqual(['machines/m-1']);
    expect(targetClient.writes).toMatchObject([{ verb: 'delete', intent: 'destroy', what: 'nodes/m-1' }]);
  });

  test('stays when its Machine is there after all', async () => {
    const { reader, targetClient, pass } = scene(true);
    reader.put(machineResource, machine());

    await pass();

    expect(targetClient.writes).toEqual([]);
  });

  test('stays when nobody can tell', async () => {
    const { reader, targetClient, pass } = scene(true);
    reader.readFailure = new ApiError(503, 'ServiceUnavailable', 'no answer');

    await expect(pass()).rejects.toThrow('no answer');
    expect(targetClient.writes).toEqual([]);
  });
});

test('a Node that was made again under the same name has its whole time', async () => {
  const { clock, nodes, pass } = scene(false);
  await pass();
  clock.advance(TIMEOUT_MS);
  nodes.put(node((n) => void Object.assign(n.metadata, { uid: 'of another', resourceVersion: '2' })));

  expect(await pass()).toMatchObject({ afterMs: TIMEOUT_MS });
});

describe('a Node of no Machine', () => {
  type Conditions = NonNullable<NonNullable<Node['status']>['conditions']>;
  const ASKED = { [MAINTENANCE_ANNOTATION]: 'true' };
  const saidIn = (client: MemoryClient): Conditions =>
    client.writes.flatMap(({ body }) => (body as { status?: { conditions?: Conditions } }).status?.conditions ?? []);

  test('that is asked for maintenance says that nothing is done, once, and when that was taken back', async () => {
    const { nodes, targetClient, pass } = scene(false);
    const show = (resourceVersion: string, annotations: Record<string, string>, conditions: Conditions): void =>
      nodes.put(
        node((n) => {
          Object.assign(n.metadata, { annotations, resourceVersion });
          Object.assign(n, { status: { conditions } });
        }),
      );

    show('2', ASKED, []);
    await pass();
    const said = saidIn(targetClient);
    show('3', ASKED, said);
    await pass();
    expect(saidIn(targetClient)).toEqual(said);
    expect(said).toMatchObject([
      { type: 'Maintenance', status: 'False', reason: 'NoMachine', message: expect.stringContaining('no Machine') },
    ]);

    show('4', {}, said);
    await pass();
    expect(saidIn(targetClient).map(({ reason }) => reason)).toEqual(['NoMachine', 'NotInMaintenance']);
  });

  test('that nobody asks for maintenance says nothing of it', async () => {
    const { targetClient, pass } = scene(false);

    await pass();

    expect(targetClient.writes).toEqual([]);
  });
});
