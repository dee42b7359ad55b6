import { describe, expect, test } from '@jest/globals';

import type { Pod } from '../../pkg/apis/wire.ts';
import type { Place } from './placement.ts';
import { planScaleUp } from './scale-up.ts';
import { unneeded } from './scale-down.ts';

const GPU = { key: 'gpu', value: 'yes', effect: 'NoSchedule' } as const;

function podOf(name: string, cpu: string, spec: Partial<NonNullable<Pod['spec']>> = {}): Pod {
  const resources = { requests: { cpu, memory: '1Gi' } };
  return { metadata: { name, uid: name }, spec: { containers: [{ name: 'c', resources }], ...spec } } as Pod;
}

function nodeOf(name: string, cpu: number, change: Partial<Place> = {}): Place {
  return { name, labels: {}, taints: [], free: { cpu, memory: 16 * 2 ** 30, pods: 110 }, ...change };
}

describe('the model of the autoscaler', () => {
  test('lets the group grow whose new nodes are filled best, by as many nodes as its pods need', () => {
    const pods = ['a', 'b', 'c'].map((name) => podOf(name, '1500m'));

    const plan = planScaleUp(pods, [
      { id: 'large', room: 5, template: nodeOf('large', 32) },
      { id: 'small', room: 5, template: nodeOf('small', 4) },
    ]);

    expect(plan).toMatchObject({ id: 'small', delta: 2 });
  });

  test.each<{ what: string; template: Place; room: number; pod: Pod }>([
    { what: 'there is no room', template: nodeOf('t', 4), room: 0, pod: podOf('p', '1') },
    { what: 'the pod is too large', template: nodeOf('t', 4), room: 5, pod: podOf('p', '5') },
    { what: 'a taint is not tolerated', template: nodeOf('t', 4, { taints: [GPU] }), room: 5, pod: podOf('p', '1') },
    {
      what: 'a label is missing',
      template: nodeOf('t', 4),
      room: 5,
      pod: podOf('p', '1', { nodeSelector: { a: 'b' } }),
    },
  ])('lets no group grow when $what', ({ template, room, pod }) => {
    expect(planScaleUp([pod], [{ id: 'g', room, template }])).toBeUndefined();
  });

  test('lets a tainted group grow for a pod that tolerates the taint', () => {
    const pod = podOf('p', '1', { tolerations: [{ key: 'gpu', operator: 'Exists' }] });
    const template = nodeOf('t', 4, { taints: [GPU] });

    expect(planScaleUp([pod], [{ id: 'g', room: 5, template }])).toMatchObject({ delta: 1 });
  });

  test('gives up only nodes whose pods find room on those that stay', () => {
    const nodes = ['a', 'b', 'c'].map((name) => {
      const pods = [podOf(`on-${name}`, '1500m')];
      return { place: nodeOf(name, 2.5), allocatable: { cpu: 4, memory: 16 * 2 ** 30, pods: 110 }, pods };
    });

    // What moves from a to b leaves no room there for the pod of c.
    expect(unneeded(nodes.slice(0, 2), 0.5)).toEqual(['a']);
    expect(unneeded(nodes, 0.3)).toEqual([]);
    expect(unneeded([{ ...nodes[0]!, pods: [] }], 0.5)).toEqual(['a']);
    // The only pod would move to b, which therefore stays, although nothing runs there yet.
    expect(unneeded([nodes[0]!, { ...nodes[1]!, pods: [] }, { ...nodes[2]!, pods: [] }], 0.5)).toEqual(['a', 'c']);
  });
});
