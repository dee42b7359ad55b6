import { describe, expect, test } from '@jest/globals';

import { node, type BuiltNode } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { NODE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { Store } from '../../kube/cache/store.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { ApiError } from '../../kube/client/errors.ts';
import type { Target } from '../../kube/targets/targets.ts';
import { MACHINE_INDEXES } from '../../operator/indexes/machine-indexes.ts';
import { nodeAccess } from './node-access.ts';

const signal = new AbortController().signal;

describe('what is done to Nodes', () => {
  function access() {
    const client = new MemoryClient();
    const nodes = nodeAccess(
      { cluster: 'target', reader: client, writer: client } as unknown as Target,
      new Store<Machine>(MACHINE_INDEXES),
    );
    return { client, nodes };
  }

  const protectedNode = (change?: (n: BuiltNode) => void): BuiltNode =>
    node((n) => {
      n.metadata.finalizers = [NODE_FINALIZER];
      change?.(n);
    });

  test('to remove one takes our finalizer and deletes that very Node, with a proof of life', async () => {
    const { client, nodes } = access();

    await nodes.remove(protectedNode(), signal);

    const { uid } = node().metadata;
    expect(client.writes).toMatchObject([
      {
        verb: 'patch',
        intent: 'change',
        uid,
        body: { metadata: { '$deleteFromPrimitiveList/finalizers': [NODE_FINALIZER] } },
      },
      { verb: 'delete', intent: 'destroy', uid },
    ]);
  });

  test('one that is going already is only let go', async () => {
    const { client, nodes } = access();

    await nodes.remove(
      protectedNode((n) => void (n.metadata.deletionTimestamp = 'now')),
      signal,
    );

    expect(client.writes.map(({ verb }) => verb)).toEqual(['patch']);
  });

  test('one that is gone is not deleted under its name', async () => {
    const { client, nodes } = access();
    client.failures.push(new ApiError(409, 'Conflict', 'another one has its name'));

    await nodes.remove(protectedNode(), signal);

    expect(client.writes.map(({ verb }) => verb)).toEqual(['patch']);
  });

  test('what is refused is told', async () => {
    const { client, nodes } = access();
    const closed = new GateClosedError('unproven', 'target', 'no sign of life');
    client.failures.push(undefined, closed);

    await expect(nodes.remove(protectedNode(), signal)).rejects.toBe(closed);
  });

  test('a VolumeAttachment is deleted as the one that was seen, with a proof of life', async () => {
    const { client, nodes } = access();

    await nodes.detach({ metadata: { ...node().metadata, name: 'va-1', uid: 'of va-1' } } as never, signal);

    expect(client.writes).toMatchObject([
      { verb: 'delete', intent: 'destroy', what: 'volumeattachments/va-1', uid: 'of va-1' },
    ]);
  });

  test('only the server says that a Node is gone', async () => {
    const { client, nodes } = access();
    expect(await nodes.read('m-1', signal)).toBeUndefined();

    client.readFailure = new ApiError(404, 'NotServed', 'of a proxy');
    await expect(nodes.read('m-1', signal)).rejects.toThrow('of a proxy');
  });
});
