import { describe, expect, test } from '@jest/globals';

import { MemoryClient } from '../../../test/memory-client.ts';
import { callOf, classOf, requestOf, stubOf } from '../../../test/drivers/requests.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import { ApiError } from '../../../pkg/kube/client/errors.ts';
import { nodes } from '../../../pkg/kube/client/resource.ts';
import { silentLogger } from '../../../pkg/base/log/logger.ts';
import { KwokDriver } from './driver.ts';
import { kwokNode } from './node.ts';

const machineClass = classOf('kwok');

function driven(...there: readonly Node[]): { driver: KwokDriver; client: MemoryClient } {
  const client = new MemoryClient();
  client.put(nodes, ...there);
  const close = () => Promise.resolve();
  return { client, driver: new KwokDriver({ reader: client, writer: client, log: silentLogger, close }) };
}

/** The Node of a VM of machine `name` with UID `u-<name>`, unless told otherwise. */
function nodeFor(
  name: string,
  change: { cluster?: string; uid?: string; className?: string; isGoing?: boolean } = {},
): Node {
  const { cluster = 'c-1', uid = `u-${name}`, className = machineClass.metadata.name, isGoing = false } = change;
  const vm = { providerID: `kwok:///${name}/1`, cluster, namespace: 'shoot', className };
  const made = kwokNode({ ...vm, machineName: name, machineUID: uid }, machineClass, { capacity: {}, nodeLabels: {} });
  const identity = { uid: `node-${name}`, resourceVersion: '1', creationTimestamp: '' };
  const end = isGoing ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
  return { ...made, metadata: { ...made.metadata, ...identity, ...end } };
}

describe('the driver for kwok', () => {
  test('makes Node and tags in one request, and asks nothing before it', async () => {
    const { driver, client } = driven();

    const { providerID, nodeName } = await driver.createMachine(requestOf('m-1', machineClass), callOf());

    expect(nodeName).toBe('m-1');
    expect(client.reads).toEqual([]);
    expect(client.writes).toMatchObject([
      { verb: 'create', what: 'nodes/m-1', body: { spec: { providerID }, metadata: { name: 'm-1' } } },
    ]);
  });

  const taken = new ApiError(409, 'AlreadyExists', 'taken');
  test.each([
    { whose: 'this machine', node: nodeFor('m-1'), outcome: { providerID: 'kwok:///m-1/1' } },
    { whose: 'another UID', node: nodeFor('m-1', { uid: 'other' }), outcome: { code: 'AlreadyExists' } },
    { whose: 'another cluster', node: nodeFor('m-1', { cluster: 'c-2' }), outcome: { code: 'AlreadyExists' } },
    { whose: 'this machine, and goes', node: nodeFor('m-1', { isGoing: true }), outcome: { code: 'Aborted' } },
    {
      whose: 'another UID, and goes',
      node: nodeFor('m-1', { uid: 'other', isGoing: true }),
      outcome: { code: 'Aborted' },
    },
    { whose: 'nobody: it went meanwhile', node: undefined, outcome: { code: 'Aborted' } },
  ])('a name that is taken by $whose: $outcome', async ({ node, outcome }) => {
    const { driver, client } = driven(...(node === undefined ? [] : [node]));
    client.failures.push(taken);

    const got = await driver.createMachine(requestOf('m-1', machineClass), callOf()).catch((err: unknown) => err);

    expect(got).toMatchObject(outcome);
  });

  test('a stub means the VM with its id alone', async () => {
    const { driver, client } = driven(nodeFor('m-1'), nodeFor('m-2'));

    await driver.deleteMachine(stubOf('m-2', 'kwok:///m-1/1', machineClass), callOf());

    expect(client.writes).toMatchObject([{ verb: 'delete', what: 'nodes/m-1', uid: 'node-m-1' }]);
  });

  test('a Node is deleted by its UID, and one that has gone or was replaced meanwhile is none of it', async () => {
    for (const failure of [new ApiError(404, 'NotFound', 'gone'), new ApiError(409, 'Conflict', 'another UID')]) {
      const { driver, client } = driven(nodeFor('m-1'));
      client.failures.push(failure);

      await expect(driver.deleteMachine(requestOf('m-1', machineClass), callOf())).resolves.toEqual({
        lastKnownState: undefined,
      });
      expect(client.writes).toHaveLength(1);
    }
  });

  test('an API server that does not answer is no word about a VM', async () => {
    const { driver, client } = driven(nodeFor('m-1'));
    client.readFailure = new ApiError(0, 'Unreachable', 'nobody there');

    for (const ask of ['getMachineStatus', 'deleteMachine', 'listMachines'] as const) {
      await expect(driver[ask](requestOf('m-1', machineClass), callOf())).rejects.toMatchObject({
        code: 'Unavailable',
      });
    }
    expect(client.writes).toEqual([]);
  });

  test.each(['', '..', 'a/b', 'A'])('there is no VM of a machine called %j, and nothing is asked', async (name) => {
    const { driver, client } = driven();

    await expect(driver.getMachineStatus(requestOf(name, machineClass), callOf())).rejects.toMatchObject({
      code: 'NotFound',
    });
    expect(client.reads).toEqual([]);
  });

  test('lists the VMs of the class and the cluster, and those that say no cluster', async () => {
    const { driver } = driven(
      nodeFor('m-1'),
      nodeFor('m-2', { cluster: 'c-2' }),
      nodeFor('m-3', { className: 'other' }),
      nodeFor('m-4', { cluster: '' }),
    );

    const listed = await driver.listMachines(requestOf('m-1', machineClass), callOf());

    expect(listed.map(({ machineName }) => machineName)).toEqual(['m-1', 'm-4']);
  });
});
