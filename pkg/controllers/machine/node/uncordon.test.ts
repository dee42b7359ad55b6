import { describe, expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import { FakeNodes } from '../../../../test/fakes/nodes.ts';
import { CORDONED_BY_MAINTENANCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { liftOwnCordon } from './uncordon.ts';

const signal = new AbortController().signal;
const MARK = { [CORDONED_BY_MAINTENANCE_ANNOTATION]: 'true' };

/** A Node with that mark, cordoned or not. */
function cordoned(isMarked: boolean, isCordoned: boolean): ReturnType<typeof node> {
  return node((n) => {
    n.metadata.resourceVersion = '7';
    if (isMarked) n.metadata.annotations = { ...MARK };
    if (isCordoned) n.spec.unschedulable = true;
  });
}

describe('to lift our cordon', () => {
  test.each([
    { of: 'ours', isMarked: true, isCordoned: true, spec: { unschedulable: null } },
    { of: 'ours, lifted by somebody else', isMarked: true, isCordoned: false, spec: undefined },
  ])('of a Node that is $of', async ({ isMarked, isCordoned, spec }) => {
    const nodes = new FakeNodes();
    nodes.cache.put(cordoned(isMarked, isCordoned));

    await liftOwnCordon({ signal }, nodes, cordoned(isMarked, isCordoned));

    expect(nodes.patches).toEqual([
      {
        metadata: { annotations: { [CORDONED_BY_MAINTENANCE_ANNOTATION]: null }, resourceVersion: '7' },
        ...(spec !== undefined && { spec }),
      },
    ]);
  });

  test('leaves the cordon of somebody else', async () => {
    const nodes = new FakeNodes();
    nodes.cache.put(cordoned(false, true));

    await liftOwnCordon({ signal }, nodes, cordoned(false, true));

    expect(nodes.done).toEqual([]);
  });

  test.each([
    { now: 'is gone', live: undefined },
    { now: 'is another of that name', live: node((n) => void (n.metadata.uid = 'another')) },
    { now: 'has lost the mark', live: cordoned(false, true) },
  ])('asks the server: nothing is done when the Node $now', async ({ live }) => {
    const nodes = new FakeNodes();
    nodes.live.set('m-1', live);

    await liftOwnCordon({ signal }, nodes, cordoned(true, true));

    expect(nodes.patches).toEqual([]);
  });
});
